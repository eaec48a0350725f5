"""More canonical views as text, at two sizes: forms, lists, dialogs and pages, some in Chinese."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from rich.cells import cell_len

from pdtui.i18n import Language, use
from pdtui.screens.form import FormScreen
from tests.tui.conftest import Driver, Start
from tests.tui.fake_client import FakeClient
from tests.tui.pictured import pictured
from tests.tui.test_form import checked, client
from tests.tui.test_more import versions
from tests.tui.test_site import with_caches

pytestmark = pytest.mark.slow

Matches = Callable[[str, str], None]
SIZES = [(80, 24), (160, 50)]
QWEN = ("G",)
EDIT = (*QWEN, "E")
VIEWS: dict[str, tuple[str, ...]] = {
    "host-add": ("2", "n"),
    "host-describe": ("2", "d"),
    "instances": ("5",),
    "instances-faults": ("5", "exclamation_mark"),
    "caches": ("6",),
    "cache-describe": ("6", "j", "enter"),
    "cache-edit": ("6", "j", "E"),
    "settings": ("7",),
    "settings-language": ("7", "enter"),
    "modes": ("4",),
    "mode-page": ("4", "enter"),
    "event-describe": ("3", "d"),
    "changes": ("j", "c"),
    "history": (*QWEN, "H"),
    "history-version": (*QWEN, "H", "enter"),
    "form-deployment": EDIT,
    "form-modes": (*EDIT, "tab", "j", "j", "j"),
    "form-prefill": (*EDIT, "tab", "tab"),
    "form-router": (*EDIT, "tab", "tab", "tab", "tab"),
    "form-yaml": (*EDIT, "Y"),
    "form-command": (*EDIT, "tab", "tab", "v"),
    "form-cache": (*EDIT, "tab", "tab", "G", "enter"),
    "form-save": (*EDIT, "tab", "tab", "enter", "ctrl+u", "3", "enter", "W"),
    "form-discard": (*EDIT, "tab", "tab", "enter", "ctrl+u", "3", "enter", "D"),
}
ILL = ("j",)
RICH: dict[str, tuple[str, ...]] = {
    "watch": (*QWEN, "w"),
    "watch-fault": (*ILL, "w"),
    "alerts": ("A",),
    "group-fault": (*ILL, "enter"),
    "diagnosis": (*ILL, "i"),
    "advice": (*QWEN, "a"),
    "doctor": ("2", "C"),
    "doctor-every": ("2", "C", "a"),
    "doctor-finding": ("2", "C", "j", "j", "enter"),
    "ports": ("2", "p"),
}
"""Views of what is looked into, on facts of their own; in both languages."""
CHINESE = ("instances", "caches", "settings", "form-router", "form-save")


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    use("en")


def site_client() -> FakeClient:
    """Everything there is to see."""
    made = client()
    made.known_caches = with_caches().known_caches
    made.versions = versions()
    return made


async def go(d: Driver, keys: tuple[str, ...]) -> None:
    """Press the keys; a form is judged before the next one."""
    for key in keys:
        await d.press(key)
        if isinstance(d.console.screen, FormScreen):
            await checked(d)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("view", VIEWS)
async def test_view_is_as_stored(
    start: Start, matches: Matches, view: str, size: tuple[int, int]
) -> None:
    async with start(site_client(), size=size) as d:
        await go(d, VIEWS[view])
        assert max(map(cell_len, d.text.splitlines())) <= size[0]
        matches(f"{view}-{size[0]}x{size[1]}", d.text)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("view", CHINESE)
async def test_view_is_as_stored_in_chinese(
    start: Start, matches: Matches, view: str, size: tuple[int, int]
) -> None:
    use("zh")
    async with start(site_client(), size=size) as d:
        await go(d, VIEWS[view])
        assert max(map(cell_len, d.text.splitlines())) <= size[0]
        matches(f"{view}-zh-{size[0]}x{size[1]}", d.text)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", RICH)
async def test_what_is_looked_into_is_as_stored(
    start: Start, matches: Matches, view: str, language: Language, size: tuple[int, int]
) -> None:
    use(language)
    async with start(pictured(), size=size) as d:
        await go(d, RICH[view])
        assert max(map(cell_len, d.text.splitlines())) <= size[0]
        suffix = "-zh" if language == "zh" else ""
        matches(f"{view}{suffix}-{size[0]}x{size[1]}", d.text)
