"""What the form shows and keeps beyond its fields: commands, comments, choices, early keys."""

from __future__ import annotations

import asyncio
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from backend.domain.errors import Refused
from backend.domain.views import CacheChoice
from pdtui import places
from pdtui.screens.dialogs.choose import ChooseDialog
from pdtui.screens.dialogs.error import ErrorDialog
from pdtui.screens.form import FormScreen
from pdtui.screens.rendered import RenderedScreen
from pdtui.state import yamltext
from pdtui.state.commented import updated
from tests.tui.conftest import Start
from tests.tui.fake_client import FakeClient
from tests.tui.test_form import checked, client, edit_qwen, form

SOURCE = """\
# the chat everybody uses
apiVersion: pdtui/v1
kind: Deployment
metadata:
  name: qwen3-32b  # never change this
  labels: {team: search}
spec:
  model: /data/models/Qwen3-32B
  engine: vllm
  # long prompts, see the runbook
  parameters: ["--max-model-len", "32768"]
  disaggregation: {mode: vllm-nixl}
  roles:
    prefill: {replicas: 2}  # by load
    decode: {replicas: 1}
"""

pytestmark = pytest.mark.slow

# comments


def test_comments_stay_where_their_fields_stay() -> None:
    document = yamltext.load(SOURCE)
    assert yamltext.load(updated(SOURCE, document)) == document
    changed = {**document, "spec": {**document["spec"], "image": "x:1"}}
    changed["spec"]["roles"] = {"prefill": {"replicas": 3}, "decode": {"replicas": 1}}
    changed["spec"]["parameters"] = ["--max-model-len", "4096", "--seed", "1"]
    text = updated(SOURCE, changed)
    assert yamltext.load(text) == changed
    for comment in ("# the chat everybody uses", "# never change this", "# long prompts", "# by"):
        assert comment in text


@pytest.mark.parametrize("source", ["", "a: 1\n", "# only a comment\n", "- 1 # a list\n", "{ # no"])
def test_a_source_that_does_not_fit_is_left_out(source: str) -> None:
    document = {"spec": {"model": "/m", "n": None, "t": True, "s": "yes", "l": []}}
    assert yamltext.load(updated(source, document)) == document


async def test_comments_survive_the_editor_the_form_and_a_save(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "as-written.yaml"
    written.write_text(SOURCE.replace("32768", "16384"))
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen\ncp {written} "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        await d.press("E")
        await d.until(lambda: "16384" in str(form(d).form.document))
        await checked(d)
        await d.press("Y")
        assert "# long prompts, see the runbook" in d.text
        await d.press("W", "enter")
        await d.until(lambda: not isinstance(d.console.screen, FormScreen))
        kept = tmp_path / "sources" / "qwen3-32b.yaml"
        await d.until(kept.exists)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        d.table.select("qwen3-32b")
        await d.press("E")
        await checked(d)
        await d.press("E")
        await d.until(lambda: "runbook" in (tmp_path / "seen").read_text())


# what would be started


async def test_the_command_of_each_role_is_shown_and_copied(start: Start) -> None:
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        await d.press("tab", "tab", "tab", "v")
        assert isinstance(d.console.screen, RenderedScreen)
        assert "command: decode" in d.text
        await d.press("y")
        words = shlex.split(d.console.clipboard)
        assert words[0] == "env"
        assert words[words.index("vllm") : words.index("vllm") + 2] == ["vllm", "serve"]
        assert "kv_consumer" in d.console.clipboard
        await d.press("right_square_bracket", "y")
        assert d.console.clipboard.startswith("vllm-router ")
        await d.press("right_square_bracket")
        assert "command: prefill" in d.text
        await d.press("left_square_bracket", "escape")
        assert isinstance(d.console.screen, FormScreen)


async def test_what_cannot_be_rendered_says_why(start: Start) -> None:
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        d.client.errors["render"] = Refused.of("router.owned_flag", "--port is the platform's.")
        await d.press("v")
        assert isinstance(d.console.screen, ErrorDialog)
        assert "--port is the platform's." in d.text


# choices


async def test_a_cache_service_is_picked_and_one_that_does_not_fit_says_why(start: Start) -> None:
    made = client()
    made.choices = (
        CacheChoice(name="pool", provider="mooncake", why_not="vllm-nixl cannot use mooncake"),
        CacheChoice(name="near", provider="lmcache"),
    )
    async with start(made, size=(100, 40)) as d:
        await edit_qwen(d)
        await d.press("tab", "tab")
        d.table.select("spec.roles.prefill.extended_kv_cache")
        await d.press("enter")
        assert isinstance(d.console.screen, ChooseDialog)
        d.table.select("service pool")
        await d.press("enter")
        assert isinstance(d.console.screen, ChooseDialog), "it cannot be chosen"
        assert "vllm-nixl cannot use mooncake" in d.text
        await d.press("down", "enter")
        document = form(d).form.document
        cache = document["spec"]["roles"]["prefill"]["extended_kv_cache"]
        assert cache == {"kind": "service", "service": "near"}


async def test_a_mode_the_hosts_cannot_take_says_what_they_lack(start: Start) -> None:
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        await d.press("tab")
        d.table.select("mode:sglang-nixl")
        await d.press("enter")
        assert "sglang" in d.message
        assert form(d).form.mode_name == "vllm-nixl"
        d.table.select("mode:vllm-nixl")
        await d.settle()
        assert "The recommended one" in d.text
        fitting = tuple(
            c.model_copy(update={"why_not": "it needs ascend accelerators; the hosts have nvidia"})
            if c.mode == "vllm-mooncake"
            else c
            for c in form(d).form.choices
        )
        d.client.fitting = fitting
        form(d)._chosen_for = ""
        form(d).fill()
        await d.settle()
        d.table.select("mode:vllm-mooncake")
        await d.press("enter")
        assert d.message == "It needs ascend accelerators; the hosts have nvidia."


# keys typed ahead


def gated(made: FakeClient, name: str, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let a call wait until the event is set, however long the keys before it take."""
    monkeypatch.setattr(places, "HOLD_S", 100.0)
    gate, ask = asyncio.Event(), getattr(made, name)

    async def slow(*args: Any, **more: Any) -> Any:
        await gate.wait()
        return await ask(*args, **more)

    monkeypatch.setattr(made, name, slow)
    return gate


async def test_keys_typed_before_the_form_opens_reach_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client()
    monkeypatch.setattr("pdtui.places.HOLD_S", 60.0)
    gate = gated(made, "modes", monkeypatch)
    async with start(made, size=(100, 40)) as d:
        await d.pilot.press("n", "enter", *"ab", "enter", "down", "enter", *"/m", "enter")
        assert not isinstance(d.console.screen, FormScreen)
        gate.set()
        await d.until(
            lambda: (
                isinstance(d.console.screen, FormScreen)
                and form(d).form.document["spec"]["model"] == "/m"
            )
        )
        assert form(d).form.name == "ab"


async def test_an_answer_that_is_an_error_takes_no_keys(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client()
    gate = gated(made, "deployment", monkeypatch)
    async with start(made, size=(100, 40)) as d:
        d.table.select("glm-5")
        await d.pilot.press("E", "D", *"glm-5", "enter")
        gate.set()
        await d.until(lambda: isinstance(d.console.screen, ErrorDialog))
        await d.settle()
        assert isinstance(d.console.screen, ErrorDialog)
        assert not d.client.calls
