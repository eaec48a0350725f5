"""Modes, histories, hosts by a dialog, event filters, merged and saved logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.errors import HostKeyUnknown, Invalid, Problem, RemoteFailed
from backend.domain.views import VersionView
from pdtui.screens.dialogs.confirm import Confirm
from pdtui.screens.dialogs.host import HostDialog
from pdtui.screens.history import HistoryScreen
from pdtui.screens.hosts import HostsScreen
from pdtui.screens.logs import LogScreen
from pdtui.screens.merged import MergedLogScreen
from pdtui.screens.modes import ModesScreen
from pdtui.screens.text import TextScreen
from pdtui.state import hostform
from pdtui.state.logs import first_error, is_error, is_probe, merged, moment
from pdtui.widgets.log_pane import LogPane
from tests.tui.conftest import Start
from tests.tui.factories import DOCUMENTS, LOGS, NOW, host, site
from tests.tui.fake_client import FakeClient
from tests.tui.test_form import client

pytestmark = pytest.mark.slow

# modes


async def test_modes_are_a_reference_of_what_each_gives_its_router(start: Start) -> None:
    async with start(client(), size=(160, 50)) as d:
        await d.press("4")
        assert isinstance(d.console.screen, ModesScreen)
        assert "restart" in d.line("vllm-mooncake")
        await d.press("enter")
        assert isinstance(d.console.screen, TextScreen)
        assert "--policy cache_aware" in d.text
        assert "cache_aware | round_robin" in d.text
        await d.press("escape", "slash", *"ascend", "enter")
        assert len(d.table.rows) == 1


# history


def versions() -> tuple[VersionView, ...]:
    """Two versions of the same deployment, newest first."""
    old = DOCUMENTS["qwen3-32b"]
    new = {**old, "spec": {**old["spec"], "env": {"HF_TOKEN": "hf_secret", "A": "1"}}}
    return (
        VersionView(version=2, at=NOW - 60, actor="op", document=new),
        VersionView(version=1, at=NOW - 3600, actor="op", document=old),
    )


async def test_the_history_shows_each_version_against_the_one_before(start: Start) -> None:
    fake = client()
    fake.versions = versions()
    async with start(fake, size=(120, 40)) as d:
        d.table.select("qwen3-32b")
        await d.settle()
        await d.press("H")
        assert isinstance(d.console.screen, HistoryScreen)
        assert "+3 -0" in d.text
        await d.press("enter")
        assert "Version 2 against version 1:" in d.text
        assert "+  env:" in d.text
        assert "hf_secret" not in d.text
        await d.press("escape", "G", "enter")
        assert "first version" not in d.text
        assert "model: /data/models/Qwen3-32B" in d.text


# hosts


async def fill(d: Any, name: str, text: str) -> None:
    box = d.console.screen.query_one(f"#box-{name}")
    box.value = text
    await d.settle()


async def test_a_host_is_added_looked_at_and_its_key_accepted(start: Start) -> None:
    fake = client()
    fake.errors["test_host"] = HostKeyUnknown.of(
        "host.key_unknown",
        "The key of gpu-9 was never accepted.",
        values={"host": "gpu-9", "fingerprint": "SHA256:abc"},
    )
    fake.put(host("gpu-9", 0))
    async with start(fake) as d:
        await d.press("2", "n")
        await d.press(*"gpu-9", "tab", *"10.0.0.9")
        await fill(d, "labels", "rack=a, zone=b")
        await fill(d, "service_port_range", "41000-41063")
        await d.press("enter")
        added = next(c for c in fake.calls if c[0] == "add_host")[1]
        assert added == {
            "name": "gpu-9",
            "address": "10.0.0.9",
            "labels": {"rack": "a", "zone": "b"},
            "service_port_range": [41000, 41063],
        }
        await d.until(lambda: isinstance(d.console.screen, Confirm))
        assert "SHA256:abc" in d.text
        await d.press("y")
        assert isinstance(d.console.screen, HostsScreen)
        assert fake.calls[-1] == ("accept_host_key", "gpu-9", "SHA256:abc")


async def test_a_refused_host_keeps_what_was_written(start: Start) -> None:
    fake = client()
    fake.errors["add_host"] = Invalid(
        Problem(rule="structure.value", path="port", message="99999 is no port.")
    )
    async with start(fake) as d:
        await d.press("2", "n")
        await d.press(*"gpu-9", "tab", *"10.0.0.9", "tab", *"99999", "enter")
        assert isinstance(d.console.screen, HostDialog)
        assert "99999 is no port." in d.words
        assert d.console.focused is d.console.screen.query_one("#box-port")
        assert "10.0.0.9" in d.text


async def test_a_host_is_edited_under_its_name(start: Start) -> None:
    fake = client()
    async with start(fake) as d:
        await d.press("2", "E")
        assert "Edit gpu-1" in d.text
        await fill(d, "user", "root")
        await d.press("enter")
        entry = next(c for c in fake.calls if c[0] == "add_host")[1]
        assert (entry["name"], entry["user"]) == ("gpu-1", "root")


def test_an_entry_is_written_as_it_is_read() -> None:
    entry = {
        "name": "gpu-1",
        "address": "10.0.0.1",
        "port": 2222,
        "identity_files": ["~/.ssh/a", "~/.ssh/b"],
        "executables": {"vllm": "/opt/vllm"},
        "service_port_range": [40000, 40100],
        "work_dir": ".elsewhere",
    }
    assert hostform.document(hostform.texts(entry), entry) == entry


# events


async def test_events_by_level_and_by_group(start: Start) -> None:
    async with start() as d:
        await d.press("3")
        every = len(d.table.rows)
        await d.press("exclamation_mark")
        assert "warnings and errors" in d.text
        assert 0 < len(d.table.rows) < every
        await d.press("exclamation_mark")
        assert {r.cells[1].text for r in d.table.rows} == {"✗ error"}
        await d.press("exclamation_mark", "o")
        assert {r.cells[2].text for r in d.table.rows} == {"deepseek-v31"}
        await d.press("o")
        assert len(d.table.rows) == every


# logs

PROBE = '(APIServer pid=7) INFO:     10.0.0.1:54321 - "GET /health HTTP/1.1" 200 OK'


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        (PROBE, True),
        ('INFO:  10.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK', True),
        ('INFO:  10.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable', False),
        ('INFO:  10.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK', False),
        ('INFO:  10.0.0.1:1 - "GET /v1/models HTTP/1.1" 200 OK', False),
        ("said GET /health", False),
    ],
)
def test_only_answered_probes_of_ours_are_hidden(text: str, probe: bool) -> None:
    assert is_probe(text) == probe


def test_merged_lines_are_in_order_of_time_and_tracebacks_stay_whole() -> None:
    a = ["INFO 11-30 07:00:01 one", "ERROR 11-30 07:00:03 three", "Traceback", "  deep"]
    b = ["[2026-11-30 07:00:02] two", "INFO 11-30 07:00:04 four"]
    assert merged([("a", a), ("b", b)]) == [
        "a INFO 11-30 07:00:01 one",
        "b [2026-11-30 07:00:02] two",
        "a ERROR 11-30 07:00:03 three",
        "a Traceback",
        "a   deep",
        "b INFO 11-30 07:00:04 four",
    ]
    assert is_error("ERROR 11-30 x")
    assert moment("no time") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INFO up\nERROR no room\nTraceback (most recent call last):", "ERROR no room"),
        ("INFO up\nTraceback (most recent call last):\n  File x\n    f()\nKeyError: 'a'\nINFO",
         "KeyError: 'a'"),
        ("(A pid=1) ERROR 11-30 [a.py:1] Traceback (most recent call last):\n"
         "(B pid=2) INFO between: us\n"
         "(A pid=1) ERROR 11-30 [a.py:1]   File x\n"
         "(A pid=1) ERROR 11-30 [a.py:1] zmq.error.Again: Resource temporarily unavailable",
         "(A pid=1) ERROR 11-30 [a.py:1] zmq.error.Again: Resource temporarily unavailable"),
        ("Traceback (most recent call last):\n  File x, cut off here",
         "Traceback (most recent call last):"),
        ("INFO up", None),
    ],
)  # fmt: skip
def test_the_first_error_is_the_line_that_says_what_happened(text: str, said: str | None) -> None:
    lines = text.split("\n")
    found = first_error(lines)
    assert (None if found is None else lines[found]) == said


@given(st.lists(st.lists(st.text(max_size=30), max_size=6), max_size=4))
def test_merging_loses_no_line_and_keeps_each_logs_order(logs: list[list[str]]) -> None:
    dated = [
        [f"07:00:{i:02d} {t}" if t[:1] > "m" else t for i, t in enumerate(one)] for one in logs
    ]
    out = merged((str(i), one) for i, one in enumerate(dated))
    for i, one in enumerate(dated):
        assert [t for t in out if t.split(" ", 1)[0] == str(i)] == [f"{i} {t}" for t in one]


def logging() -> FakeClient:
    """Members that probes reach, one of them failing."""
    logs = {
        **LOGS,
        ("qwen3-32b-p0", 1): f"INFO 11-30 07:00:01 up\n{PROBE}\n{PROBE}\nERROR 11-30 07:00:05 no\n",
        ("qwen3-32b-d0", 1): "INFO 11-30 07:00:03 decode up\nValueError: bad\n",
    }
    return FakeClient(site(), documents=DOCUMENTS, logs=logs)


async def test_probes_are_counted_and_shown_by_a_key(start: Start) -> None:
    async with start(logging()) as d:
        await d.open_group("qwen3-32b", "qwen3-32b-p0")
        await d.press("l")
        await d.until(lambda: "07:00:05" in d.text)
        assert "GET /health" not in d.text
        assert "2 probes hidden (h)" in d.text
        await d.press("h")
        assert "GET /health" in d.text
        await d.press("h")
        assert "GET /health" not in d.text


async def test_the_first_error_is_a_key_away(start: Start) -> None:
    async with start(size=(80, 24)) as d:
        await d.open_group("qwen3-32b", "qwen3-32b-p0")
        await d.press("l")
        await d.until(lambda: "reqs" in d.text)
        assert "EngineCore failed" not in d.text
        await d.press("f")
        assert "EngineCore failed to start" in d.text


async def test_a_log_without_an_error_says_so(start: Start) -> None:
    fake = logging()
    fake.logs["qwen3-32b-p1", 1] = "INFO all is well\n"
    async with start(fake) as d:
        await d.open_group("qwen3-32b", "qwen3-32b-p1")
        await d.press("l")
        await d.until(lambda: "all is well" in d.text)
        await d.press("f")
        assert d.message == "No error is in this log."


async def test_all_members_in_one_and_back_to_one(start: Start) -> None:
    fake = logging()
    async with start(fake, size=(100, 30)) as d:
        d.table.select("qwen3-32b")
        await d.settle()
        await d.press("m")
        assert isinstance(d.console.screen, MergedLogScreen)
        await d.until(lambda: "decode up" in d.text)
        pane = d.console.screen.query_one(LogPane)
        shown = [t for t in pane.lines_held if "GET" not in t]
        assert shown == [
            "p0› INFO 11-30 07:00:01 up",
            "d0› INFO 11-30 07:00:03 decode up",
            "d0› ValueError: bad",
            "p0› ERROR 11-30 07:00:05 no",
        ]
        fake.logs["qwen3-32b-d0", 1] += "INFO 11-30 07:00:06 later\n"
        await d.until(lambda: "d0› INFO 11-30 07:00:06 later" in d.text)
        await d.press("f")
        assert d.console.screen.query_one(LogPane).current_match >= 0
        await d.press("m")
        await d.until(lambda: type(d.console.screen) is LogScreen)


async def test_the_whole_log_is_written_to_a_file(start: Start, tmp_path: Path) -> None:
    async with start(logging()) as d:
        await d.open_group("qwen3-32b", "qwen3-32b-p0")
        await d.press("l")
        await d.until(lambda: "07:00:05" in d.text)
        await d.press("s")
        await d.until(lambda: "Saved 4 lines" in d.message)
        (path,) = (tmp_path / "logs").iterdir()
        assert path.name.startswith("qwen3-32b-p0-g1-")
        assert path.read_text().count("GET /health") == 2


async def test_a_log_that_cannot_be_saved_says_why(start: Start, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    async with start(logging()) as d:
        await d.open_group("qwen3-32b", "qwen3-32b-p0")
        await d.press("l")
        await d.until(lambda: "07:00:05" in d.text)
        await d.press("s")
        await d.until(lambda: "cannot be written" in d.message)


async def test_a_member_that_does_not_answer_leaves_the_others_readable(start: Start) -> None:
    fake = logging()
    real = fake.log

    async def failing(instance: str, **how: Any) -> Any:
        if instance.endswith("p0"):
            raise RemoteFailed.of("host.gone", "gpu-1 does not answer.")
        return await real(instance, **how)

    fake.log = failing  # type: ignore[method-assign]
    async with start(fake) as d:
        d.table.select("qwen3-32b")
        await d.settle()
        await d.press("m")
        await d.until(lambda: "decode up" in d.text)
