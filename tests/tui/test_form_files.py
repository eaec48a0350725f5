"""The form beyond the screen: the user's editor, and drafts that survive the console."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pdtui.screens.dialogs.confirm import Confirm, LineQuestion
from pdtui.screens.form import FormScreen
from pdtui.screens.groups import GroupsScreen
from tests.tui.conftest import Start
from tests.tui.test_form import client, edit_qwen, form, write

pytestmark = pytest.mark.slow

# the editor


def editor(tmp_path: Path, script: str) -> str:
    """A program that edits the file it is given."""
    path = tmp_path / "editor.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


async def test_the_document_goes_through_the_editor(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "VISUAL", editor(tmp_path, "sed -i 's/replicas: 2/replicas: 4/' \"$1\"; exit 0")
    )
    async with start(client()) as d:
        await edit_qwen(d)
        await d.press("E")
        assert form(d).form.document["spec"]["roles"]["prefill"]["replicas"] == 4
        assert form(d).tab == "deployment"


async def test_text_that_is_no_yaml_is_kept_until_it_is_mended(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = editor(tmp_path, "printf 'spec: [1\\nmine: 2\\n' > \"$1\"")
    monkeypatch.setenv("VISUAL", broken)
    async with start(client(), size=(120, 40)) as d:
        await edit_qwen(d)
        before = form(d).form.document
        await d.press("E")
        assert "Cannot be read: 2:" in d.message
        assert "mine: 2" in d.text
        assert form(d).form.document == before
        await d.press("W")
        assert "cannot be read" in d.message
        monkeypatch.setenv("VISUAL", editor(tmp_path, 'grep -q mine "$1" && echo \'{}\' > "$1"'))
        await d.press("E")
        assert form(d).bad_text == ""
        assert form(d).form.document == {}


async def test_an_editor_that_fails_changes_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, 'echo gone > "$1"; exit 3'))
    async with start(client()) as d:
        await edit_qwen(d)
        before = form(d).form
        await d.press("E")
        assert "exit code 3" in d.message
        assert form(d).form == before


# drafts


def files(folder: Path) -> list[Path]:
    return list((folder / "drafts").glob("*.json"))


def abandoned(folder: Path, **more: Any) -> None:
    """What a console that died left behind."""
    (folder / "drafts").mkdir()
    body = {
        "document": {"metadata": {"name": "lost"}, "spec": {"model": "/m", "engine": "vllm"}},
        "original": None,
        "version": 0,
        "saved": 1_779_999_940.0,
        "owner": 0,
        "text": "",
        **more,
    }
    (folder / "drafts" / "1-a.json").write_text(json.dumps(body))


async def test_what_is_written_is_on_disk_for_its_owner_alone(start: Start, tmp_path: Path) -> None:
    async with start(client()) as d:
        await edit_qwen(d)
        await write(d, "spec.model", "/data/other")
        await d.until(lambda: files(tmp_path))
        await d.settle()
        (path,) = files(tmp_path)
        body = json.loads(path.read_text())
        assert body["document"]["spec"]["model"] == "/data/other"
        assert body["owner"] == os.getpid()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await d.press("D", "y")
        await d.until(lambda: not files(tmp_path))


async def test_a_draft_of_a_dead_console_is_offered_and_taken_up(
    start: Start, tmp_path: Path
) -> None:
    abandoned(tmp_path)
    async with start(client()) as d:
        await d.until(lambda: isinstance(d.console.screen, LineQuestion))
        assert "A draft of lost was left 1m00s ago" in d.words
        await d.press("y")
        await d.until(lambda: isinstance(d.console.screen, FormScreen))
        assert form(d).form.name == "lost"


async def test_a_refused_draft_stays_and_n_offers_it_again(start: Start, tmp_path: Path) -> None:
    abandoned(tmp_path)
    async with start(client()) as d:
        await d.until(lambda: isinstance(d.console.screen, LineQuestion))
        await d.press("n")
        await d.press("n")
        assert isinstance(d.console.screen, LineQuestion)
        await d.press("n")
        assert form(d).form.name == ""
        assert len(files(tmp_path)) == 1


async def test_the_draft_of_a_living_console_is_left_alone(start: Start, tmp_path: Path) -> None:
    abandoned(tmp_path, owner=os.getppid())
    async with start(client()) as d:
        await d.press("n")
        assert form(d).form.name == ""


async def test_leaving_asks_and_keeps_the_draft(start: Start, tmp_path: Path) -> None:
    async with start(client()) as d:
        await edit_qwen(d)
        await write(d, "spec.model", "/data/other")
        await d.press("1")
        assert isinstance(d.console.screen, Confirm), "also when another area is asked for"
        await d.press("n")
        assert isinstance(d.console.screen, FormScreen)
        await d.press("escape", "y")
        assert isinstance(d.console.screen, GroupsScreen)
        await d.until(lambda: files(tmp_path))
        await d.press("n", "y")
        assert form(d).form.document["spec"]["model"] == "/data/other"


async def test_an_unchanged_form_closes_without_a_word(start: Start, tmp_path: Path) -> None:
    async with start(client()) as d:
        await edit_qwen(d)
        await d.press("W")
        assert d.message == "Nothing was changed."
        await d.press("escape")
        assert isinstance(d.console.screen, GroupsScreen)
        assert files(tmp_path) == []


async def test_secrets_are_hidden_where_a_document_is_described_or_copied(
    start: Start, tmp_path: Path
) -> None:
    fake = client()
    document = await fake.deployment("qwen3-32b")
    secret = {**document, "spec": {**document["spec"], "env": {"HF_TOKEN": "hf_abc"}}}
    fake._documents = {"qwen3-32b": secret}
    async with start(fake, size=(120, 60)) as d:
        d.table.select("qwen3-32b")
        await d.settle()
        await d.press("d")
        assert "HF_TOKEN" in d.text
        assert "hf_abc" not in d.text
        await d.press("escape", "E", "y")
        assert "HF_TOKEN" in d.console.clipboard
        assert "hf_abc" not in d.console.clipboard
