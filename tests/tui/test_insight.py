"""Diagnosis in the console: for a group, a member, and the log that is shown."""

from __future__ import annotations

import pytest

from backend.domain.advice.judge import advise
from pdtui.i18n import use
from pdtui.i18n.catalog import Language
from pdtui.screens.logs import LogScreen
from pdtui.screens.text import TextScreen
from pdtui.state.logs import is_error
from tests.tui.conftest import Start
from tests.tui.test_form import client
from tests.unit.domain.advice.test_judge import CASE


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_a_groups_first_causes_come_first(start: Start, size: tuple[int, int]) -> None:
    async with start(client(), size=size) as d:
        d.table.select("deepseek-v31")
        await d.settle()
        await d.press("i")
        assert isinstance(d.console.screen, TextScreen)
        assert "deepseek-v31-p1" in d.text
        assert "attempt 3" in d.text
        assert "The engine's HTTP port is taken." in d.text
        await d.press("G")
        await d.press("escape")
        assert not isinstance(d.console.screen, TextScreen)


async def test_the_log_shown_is_the_one_diagnosed(start: Start) -> None:
    async with start(client(), size=(120, 40)) as d:
        d.table.select("deepseek-v31")
        await d.settle()
        await d.press("l")
        await d.press("p")
        await d.press("i")
        assert isinstance(d.console.screen, TextScreen)
        assert "attempt 2" in d.text
        assert "second try" in d.text
        assert "docs/troubleshooting.md#portshttp" in d.text


async def test_in_chinese(start: Start) -> None:
    use("zh")
    try:
        async with start(client(), size=(120, 40)) as d:
            d.table.select("deepseek-v31")
            await d.settle()
            await d.press("i")
            assert "引擎的 HTTP 端口已被占用。" in d.text
            assert "处理" in d.text
    finally:
        use("en")


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_advice_answers_the_three_questions(start: Start, language: Language) -> None:
    fake = client()
    fake.advice = advise(CASE)
    use(language)
    try:
        async with start(fake, size=(120, 40)) as d:
            d.table.select("qwen3-32b")
            await d.settle()
            await d.press("a")
            assert isinstance(d.console.screen, TextScreen)
            assert ("advise", {"name": "qwen3-32b"}) in fake.calls
            assert "20:1" in d.text
            assert "83.9 ms" in d.text
            title = {"en": "Is the KV transfer fast enough?", "zh": "KV 传输是否足够快？"}
            assert title[language] in d.text
    finally:
        use("en")


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("vllm: error: unrecognized arguments: --max-num-seq-len 9", True),
        ("error: unexpected argument '--frob' found", True),
        ("thread 'main' panicked at src/main.rs:12:5:", True),
        ("/bin/sh: 1: exec: vllm: not found", True),
        ("bash: line 3: /opt/vllm: Permission denied", True),
        ("Segmentation fault (core dumped)", True),
        ("ValueError: bad", True),
        ("INFO 11-30 07:00:01 no error: all is well", False),
        ("INFO 11-30 07:00:01 cache entry: not found, filled", False),
        ("usage: vllm [-h] [-v]", False),
        ("Killed", True),
        ("Killed-jobs counter reset", False),
    ],
)
def test_an_error_is_known_whoever_writes_it(text: str, *, bad: bool) -> None:
    assert is_error(text) is bad


@pytest.mark.parametrize("row", ["role:prefill", "role:decode", "role:router"])
async def test_on_a_heading_the_first_error_is_that_of_the_whole_group(
    start: Start, row: str
) -> None:
    async with start(size=(160, 40)) as d:
        await d.open_group("deepseek-v31")
        assert d.table.select(row)
        await d.press("f")
        assert isinstance(d.console.screen, LogScreen)
        assert d.console.screen.instance == "deepseek-v31-p1"


async def test_a_failing_instance_offers_its_first_error(start: Start) -> None:
    async with start(size=(160, 40)) as d:
        await d.press("5")
        d.table.select("deepseek-v31-p1")
        await d.settle()
        assert list(d.hints)[:2] == ["instances.first_error", "instances.logs"]
        d.table.select("deepseek-v31-p0")
        await d.settle()
        assert next(iter(d.hints)) == "list.open"
