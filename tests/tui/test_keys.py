"""The page of keys is the table's; a user's keys come from a file, each mistake as a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdtui.commands import catalog
from pdtui.commands.reference import ORDER, page
from pdtui.config import read_keys
from pdtui.screens.dialogs.confirm import Confirm
from tests.tui.conftest import Start

DOCS = Path(__file__).parents[2] / "docs" / "keys.md"


def test_the_page_of_keys_is_the_tables() -> None:
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "stale: python -m pdtui.commands.reference > docs/keys.md"
    )


def test_every_command_with_a_key_is_on_the_page() -> None:
    assert {c.scope for c in catalog.COMMANDS} == set(ORDER)
    for command in catalog.COMMANDS:
        assert not command.keys or f"`{command.id}`" in page()


@pytest.mark.parametrize(
    ("text", "good", "says"),
    [
        ("groups.restart: f6\nlog.search: [ctrl+f, f3]\n",
         {"groups.restart": "f6", "log.search": "ctrl+f,f3"}, []),
        ("", {}, []),
        ("- f6\n", {}, ["must map command ids to keys"]),
        ("groups.restart: [f6\n", {}, ["keys.yaml:2:1"]),
        ("groups.restart: 5\nlog.search: f3\n", {"log.search": "f3"}, ["groups.restart needs"]),
        ("groups.restart: true\n", {}, ["not True"]),
    ],
)  # fmt: skip
def test_a_file_of_keys_is_read_line_by_line(
    tmp_path: Path, text: str, good: dict[str, str], says: list[str]
) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    found, bad = read_keys(path)
    assert found == good
    assert len(bad) == len(says)
    assert all(part in sentence for part, sentence in zip(says, bad, strict=True))


def test_no_file_and_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert read_keys(tmp_path / "none.yaml") == ({}, [])
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00")
    found, bad = read_keys(tmp_path / "bin.yaml")
    assert found == {}
    assert "cannot be read" in bad[0]


async def test_keys_of_a_file_work_are_shown_and_complained_of(
    start: Start, tmp_path: Path
) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("groups.restart: f6\ngroups.scale: ctrl+b\nno.such: f9\n")
    async with start(keys_file=path) as d:
        assert "ctrl+b" in d.message
        assert "(and 1 more in the help)" in d.message
        d.table.select("qwen3-32b")
        await d.settle()
        assert "f6 restart" in d.text
        await d.press("question_mark")
        assert "there is no command no.such" in d.text
        await d.press("escape", "f6")
        assert isinstance(d.console.screen, Confirm)


async def test_a_read_only_console_reads_everything_and_changes_nothing(start: Start) -> None:
    async with start(read_only=True) as d:
        assert "read-only" in d.text
        d.table.select("qwen3-32b")
        await d.settle()
        for key in ("n", "E", "S", "r", "D", "x", "plus"):
            await d.press(key)
            assert d.message == "This console is read-only.", key
        await d.press("2")
        for key in ("n", "E", "D"):
            await d.press(key)
            assert d.message == "This console is read-only.", key
        assert d.client.calls == []
