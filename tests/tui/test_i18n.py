"""Both languages say everything, with the same values; Chinese lines up in the terminal."""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

import pdtui.i18n
from backend.domain.errors import Problem
from pdtui.i18n import current, pick, use
from pdtui.i18n.en import TEXT as EN
from pdtui.i18n.zh import TEXT as ZH
from pdtui.present.problems import said
from tests.tui.catalogue import judged
from tests.tui.conftest import Start
from tests.tui.factories import DOCUMENTS
from tests.tui.test_form import checked, client


@pytest.fixture
def chinese() -> Iterator[None]:
    """Everything in Chinese, for one test."""
    use("zh")
    yield
    use("en")


def names(text: str) -> set[str]:
    """The placeholders of a text."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys() -> None:
    assert set(EN) - set(ZH) == set()
    assert set(ZH) <= set(EN)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_text_is_written_twice(language: str) -> None:
    """One catalogue is laid over the next, so that a second text would hide the first unseen."""
    folder = Path(pdtui.i18n.__file__).parent
    keys = Counter(
        key.value
        for path in folder.glob(f"{language}*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    )
    assert [key for key, times in keys.items() if times > 1] == []


def test_both_languages_name_the_same_values() -> None:
    for key, text in EN.items():
        assert names(ZH[key]) == names(text), key


def test_what_is_a_sentence_in_english_is_chinese_in_chinese() -> None:
    """Names of commands, flags and files stay; a whole English sentence is one nobody did."""
    for key, text in EN.items():
        words = re.findall(r"[A-Za-z]{3,}", text)
        if len(words) > 3 and not key.startswith("hostform.hint.executables"):
            assert re.search(r"[\u4e00-\u9fff]", ZH[key]), key


@pytest.mark.parametrize(
    ("environ", "setting", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "", "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "", "en"),
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "C"}, "", "zh"),
        ({"LANG": "C.UTF-8", "PDTUI_LANGUAGE": "zh"}, "", "zh"),
        ({"PDTUI_LANGUAGE": "zh"}, "en", "en"),
        ({}, "", "en"),
    ],
)
def test_the_language_is_set_or_the_locales(
    environ: dict[str, str], setting: str, language: str
) -> None:
    assert pick(environ, setting) == language


@pytest.mark.usefixtures("chinese")
def test_findings_are_said_in_chinese_where_their_rule_is_known() -> None:
    assert current() == "zh"
    roles = {"decode": {"parameters": ["--max-model-len", "4096"]}}
    document = DOCUMENTS["qwen3-32b"]
    (known,) = judged({**document, "spec": {**document["spec"], "roles": roles}})
    message, remedy = said(known)
    assert known.message not in (message, remedy)
    assert "4096" in message
    assert re.search(r"[\u4e00-\u9fff]{4}", message)
    unknown = Problem(rule="own.rule", message="As it came.", remedy="Do it.")
    assert said(unknown) == ("As it came.", "Do it.")


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_every_main_view_in_chinese_keeps_to_its_cells(
    start: Start, size: tuple[int, int]
) -> None:
    async with start(client(), size=size) as d:
        assert "部分就绪" in d.text
        assert "配置已更改" in d.text
        d.table.select("deepseek-v31")
        await d.settle()
        for keys, shows in (
            (("enter",), "比例 2:1 (当前 1:1)"),
            (("S", "plus"), "副本数"),
            (("escape", "r"), "重启"),
            (("escape", "question_mark"), "按键"),
            (("escape", "escape", "E"), ""),
        ):
            await d.press(*keys)
            assert shows in d.text
            assert all(cell_len(line) <= size[0] for line in d.text.splitlines()), shows


@pytest.mark.usefixtures("chinese")
async def test_the_form_judges_in_chinese(start: Start) -> None:
    async with start(client(), size=(160, 50)) as d:
        d.table.select("qwen3-32b")
        await d.settle()
        await d.press("E", "tab", "tab", "tab")
        assert "继承" in d.text
        d.table.select("spec.roles.decode.parameters[0]")
        await d.settle()
        await d.press("enter", "ctrl+u", *"--max-model-len 4096", "enter")
        await checked(d)
        assert "拒绝" in d.text
        assert re.search(r"✗.*4096.*[\u4e00-\u9fff]{4}", d.line("--max-model-len 4096"))
