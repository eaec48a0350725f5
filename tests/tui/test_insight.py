"""Diagnosis in the console: for a group, a member, and the log that is shown."""

from __future__ import annotations

import pytest

from pdtui.i18n import use
from pdtui.screens.text import TextScreen
from tests.tui.conftest import Start
from tests.tui.test_form import client


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
