"""The form on the screen: filled in by keys, judged live, saved by plan, kept over a crash."""

from __future__ import annotations

import pytest

from backend.domain.errors import Conflict, Problem, Refused
from pdtui.screens.dialogs.confirm import Confirm
from pdtui.screens.form import FormScreen
from pdtui.screens.group import GroupScreen
from pdtui.screens.groups import GroupsScreen
from pdtui.widgets.cell_editor import CellEditor
from tests.tui.catalogue import fitting, judged, modes, rendered
from tests.tui.conftest import Driver, Start
from tests.tui.factories import DOCUMENTS, LOGS, running, site
from tests.tui.fake_client import FakeClient

pytestmark = pytest.mark.slow


def client() -> FakeClient:
    """A backend that judges by the shipped rules."""
    made = FakeClient(site(), documents=DOCUMENTS, logs=LOGS)
    made.known_modes = modes()
    made.judge = judged
    made.renderer, made.fitting = rendered, fitting()
    return made


def form(d: Driver) -> FormScreen:
    """The form on top."""
    screen = d.console.screen
    assert isinstance(screen, FormScreen)
    return screen


async def edit_qwen(d: Driver) -> None:
    d.table.select("qwen3-32b")
    await d.settle()
    await d.press("E")
    await checked(d)


async def checked(d: Driver) -> None:
    """Wait for the verdicts on what is written now."""
    await d.until(lambda: form(d).state == "checked" and d.client.checked)
    await d.settle()


async def write(d: Driver, key: str, text: str) -> None:
    """Go to a row and write its value anew."""
    assert d.table.select(key)
    await d.settle()
    await d.press("enter")
    await d.press("ctrl+u", "ctrl+k")
    for letter in text:
        await d.pilot.press(letter if letter not in "=" else "equals_sign")
    await d.press("enter")


async def test_a_2p1d_with_a_decode_override_by_keys_alone(start: Start) -> None:
    async with start(client(), size=(80, 24)) as d:
        await d.press("n")
        await write(d, "metadata.name", "mine")
        await write(d, "spec.model", "/data/m")
        await d.press("right_square_bracket")
        assert d.table.select("mode:vllm-nixl")
        await d.press("enter")
        assert form(d).form.mode_name == "vllm-nixl"
        await d.press("right_square_bracket")
        await write(d, "spec.roles.prefill.replicas", "2")
        await d.press("right_square_bracket")
        d.table.select("spec.roles.decode.parameters")
        await d.settle()
        await d.press("o", "n")
        await d.pilot.press(*"--seed 1")
        await d.press("enter")
        await checked(d)
        assert "no findings" in d.text
        await d.press("W")
        assert isinstance(d.console.screen, Confirm)
        assert "prefill 2, decode 1" in d.words
        await d.press("y")
        await d.until(lambda: isinstance(d.console.screen, GroupScreen))
        name, document, dry = d.client.calls[-1]
        assert (name, dry) == ("apply", False)
        assert document["metadata"] == {"name": "mine"}
        assert document["spec"]["roles"]["decode"]["parameters"] == ["--seed", "1"]
        assert d.console.screen.group_name == "mine"


async def test_verdicts_come_beside_the_field_and_stop_the_save(start: Start) -> None:
    async with start(client(), size=(160, 50)) as d:
        await edit_qwen(d)
        await d.press("tab", "tab", "tab")
        await write(d, "spec.roles.decode.parameters[0]", "--max-model-len 4096")
        await d.until(lambda: form(d).problems)
        await d.settle()
        assert "✗" in d.line("--max-model-len 4096")
        assert "decode ✗1" in d.text
        assert "1 refused" in d.text
        await d.press("left_square_bracket", "W")
        assert form(d).tab == "decode", "the save leads to what is refused"
        assert d.client.calls == []
        assert d.table.cursor_key == "spec.roles.decode.parameters[0]"
        assert "Refused" in d.message


async def test_refusals_of_the_save_are_shown_at_their_fields_and_nothing_is_lost(
    start: Start,
) -> None:
    fake = client()
    async with start(fake, size=(160, 50)) as d:
        await edit_qwen(d)
        await write(d, "spec.model", "/data/other")
        await checked(d)
        fake.errors["apply"] = Refused.of(
            "host.kv_interface", "gpu-1 has several.", path="spec.roles.prefill.hosts"
        )
        await d.press("W", "y")
        assert form(d).tab == "prefill"
        assert d.table.cursor_key == "spec.roles.prefill.hosts"
        assert "gpu-1 has several." in d.text
        assert form(d).form.document["spec"]["model"] == "/data/other"


async def test_a_lost_backend_keeps_the_form_and_judges_again_when_it_is_back(
    start: Start,
) -> None:
    fake = client()
    async with start(fake) as d:
        await edit_qwen(d)
        fake.connection(False)
        await write(d, "spec.model", "/data/other")
        await d.until(lambda: form(d).state == "unchecked")
        await d.settle()
        assert "not checked: no connection" in d.text
        await d.press("W")
        assert d.message == "Not connected to a backend."
        fake.connection(True)
        await d.until(lambda: form(d).state == "checked")
        assert d.table.cursor_key == "spec.model"
        assert form(d).form.document["spec"]["model"] == "/data/other"


async def test_a_newer_version_and_a_taken_name_are_said(start: Start) -> None:
    fake = client()
    async with start(fake, size=(120, 40)) as d:
        await edit_qwen(d)
        await write(d, "spec.model", "/data/other")
        fake.put(running(version=9))
        await checked(d)
        await d.press("W")
        assert "Version 9 was saved since this form opened version 3" in d.words
        await d.press("n", "D", "y")
        await d.until(lambda: isinstance(d.console.screen, GroupsScreen))
        await d.press("n")
        await write(d, "metadata.name", "glm-5")
        await checked(d)
        assert "There is a deployment glm-5 already" in d.words


async def test_inherit_override_and_remove_say_why_they_cannot(start: Start) -> None:
    async with start(client(), size=(120, 40)) as d:
        await edit_qwen(d)
        await d.press("o")
        assert d.message == "This field inherits nothing."
        await d.press("tab", "tab")
        d.table.select("spec.roles.prefill.env")
        await d.settle()
        await d.press("i")
        assert d.message == "This is inherited already."
        await d.press("o")
        assert "own value" in d.line("Environment")
        await d.press("i")
        assert "inherited" in d.line("Environment")
        await d.press("tab", "tab")
        d.table.select("spec.roles.router.parameters~--policy")
        await d.settle()
        await d.press("X")
        assert "cannot be removed" in d.message
        d.table.select("spec.roles.router.parameters~--port")
        await d.settle()
        await d.press("enter")
        assert "platform" in d.message


async def test_a_mode_of_another_engine_says_why(start: Start) -> None:
    async with start(client()) as d:
        await edit_qwen(d)
        await d.press("tab")
        d.table.select("mode:sglang-nixl")
        await d.settle()
        await d.press("enter")
        assert "sglang" in d.message
        assert form(d).form.mode_name == "vllm-nixl"


async def test_the_router_of_ones_own_is_manual_at_once(start: Start) -> None:
    async with start(client(), size=(120, 40)) as d:
        await edit_qwen(d)
        await d.press("shift+tab", "shift+tab")
        await write(d, "spec.roles.router.run_command", "my-router")
        assert "manual, the operator updates the router" in d.words


async def test_secrets_are_hidden_on_every_page(start: Start) -> None:
    async with start(client(), size=(120, 40)) as d:
        await edit_qwen(d)
        d.table.select("spec.env+")
        await d.settle()
        await d.press("enter")
        await d.pilot.press(*"HF_TOKEN", "equals_sign", *"hf_abc")
        await d.press("enter")
        assert "hf_abc" not in d.text
        await d.press("P")
        assert "HF_TOKEN" in d.text
        assert "hf_abc" not in d.text
        await d.press("escape", "Y")
        assert "HF_TOKEN" in d.text
        assert "hf_abc" not in d.text


async def test_a_conflict_at_the_save_keeps_the_form(start: Start) -> None:
    fake = client()
    async with start(fake) as d:
        await edit_qwen(d)
        await write(d, "spec.model", "/data/other")
        await checked(d)
        fake.errors["apply"] = Conflict.of("life.deleting", "It is being deleted.")
        await d.press("W", "y")
        assert isinstance(d.console.screen, FormScreen)


async def test_the_box_follows_its_cell_through_a_resize(start: Start) -> None:
    async with start(client(), size=(80, 24)) as d:
        await edit_qwen(d)
        d.table.select("spec.model")
        await d.settle()
        await d.press("enter", "x")
        for size in ((60, 20), (300, 80), (80, 24)):
            await d.pilot.resize_terminal(*size)
            await d.settle()
            await d.pilot.pause()
            box = d.console.screen.query_one(CellEditor)
            assert box.region == d.table.cell_region("spec.model", "value"), size
            assert box.value == "/data/models/Qwen3-32Bx"
            assert box.cursor_position == len(box.value)
        await d.press("enter")
        assert form(d).form.document["spec"]["model"] == "/data/models/Qwen3-32Bx"


async def test_tabs_are_clicked(start: Start) -> None:
    async with start(client(), size=(100, 30)) as d:
        await edit_qwen(d)
        await d.pilot.click("#tabs", offset=(20, 0))
        await d.settle()
        assert form(d).tab == "disaggregation"


async def test_findings_on_hosts_are_listed_below_the_fields(start: Start) -> None:
    fake = client()
    one = Problem(
        rule="host.ephemeral_ports",
        path="hosts.gpu-1.service_port_range",
        message="the ports of gpu-1 are the system's too",
        remedy="Move them.",
        verdict="warning",
    )
    fake.judge = lambda _: [one]
    async with start(fake, size=(120, 40)) as d:
        await edit_qwen(d)
        assert "Deployment ▲1" in d.text
        assert "1 warning" in d.text
        await d.press("G")
        assert "the ports of gpu-1 are the system's too" in d.text
        assert "Move them." in d.text
        await d.press("enter", "o", "X")
        assert isinstance(d.console.screen, FormScreen)


async def test_the_key_bar_says_what_enter_does(start: Start) -> None:
    """On a field, while a value is written, in a list and where one of a few is chosen."""
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        d.table.select("spec.model")
        await d.settle()
        assert d.keys["enter"] == "write"
        await d.press("enter")
        assert d.keys == {"enter": "keep what is written", "esc": "change nothing"}
        await d.press("escape")
        assert d.keys["enter"] == "write"
        for key, does in (("spec.engine", "choose"), ("spec.parameters+", "add")):
            d.table.select(key)
            await d.settle()
            assert d.keys["enter"] == does
        await d.press("slash")
        assert d.keys == {"enter": "keep", "esc": "clear"}
        await d.press("escape")
        assert d.keys["W"] == "save"


async def test_keys_of_roles_stand_on_the_roles_tabs(start: Start) -> None:
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        assert "form.override" not in d.hints
        await d.press("tab", "tab")
        assert "form.override" in d.hints


async def test_the_ratio_is_set_where_the_mode_is(start: Start) -> None:
    async with start(client(), size=(100, 40)) as d:
        await edit_qwen(d)
        await d.press("tab")
        await write(d, "spec.roles.prefill.replicas", "5")
        await checked(d)
        assert form(d).form.document["spec"]["roles"]["prefill"]["replicas"] == 5
        assert "Replicas, prefill 5" in d.words
        await d.press("tab")
        assert d.table.cursor_key == "spec.roles.prefill.replicas"


async def test_what_is_needed_is_said_and_what_is_cut_is_read_out(start: Start) -> None:
    async with start(client(), size=(80, 24)) as d:
        await d.press("n")
        assert d.line("Name").split()[-1] == "needed"
        long = "/data/models/" + "m" * 60
        await write(d, "spec.model", long)
        await checked(d)
        assert "needed" not in d.line("  Model ")
        assert long[:60] in d.text
