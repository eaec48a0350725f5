"""How commands print: one shape for all, colours for people only, nobody asked where nobody is."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from backend.domain.errors import Problem
from backend.domain.views import GroupView, HostView
from pdtui.cli import app
from pdtui.cli.common import complain_of, guarded
from pdtui.cli.examples import EXAMPLES
from pdtui.cli.output import clear_line, coloured, print_json, print_table, shaped
from pdtui.cli.progress import Progress
from pdtui.cli.tables import group_rows, host_rows

Json = Annotated[bool, typer.Option("--json")]


def shown(*args: str) -> Any:
    """What a command of ours prints, by its options."""
    one = typer.Typer()

    @guarded
    def things(name: str = "x", json: Json = False) -> None:
        answer = {"name": name, "words": ["on", "1e3", "中文"]}
        print_json(answer) if json else print_table(("NAME", "STATE"), [(name, "Running")])

    one.command()(shaped(things))
    return CliRunner().invoke(one, list(args))


@pytest.mark.parametrize("args", [["--json"], ["-o", "json"], ["--output=json", "--json"]])
def test_json_has_two_names(args: list[str]) -> None:
    done = shown(*args, "--name", "chat")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"name": "chat", "words": ["on", "1e3", "中文"]}


def test_yaml_says_the_same() -> None:
    done = shown("-o", "yaml")
    assert yaml.safe_load(done.stdout) == json.loads(shown("--json").stdout)


def test_a_table_in_a_pipe_has_no_colours() -> None:
    for args in ([], ["-o", "table"], ["-o", "wide"]):
        assert shown(*args).stdout == "NAME  STATE\nx     Running\n"


def test_two_shapes_at_once_are_refused() -> None:
    done = shown("--json", "-o", "yaml")
    assert done.exit_code == 2
    assert "contradict" in done.stderr


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert coloured(Terminal()) is expected
    assert not coloured(io.StringIO())


def commands(one: typer.Typer, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command there is, by its words."""
    tree: Any = typer.main.get_command(one)

    def walk(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
        yield " ".join(words), command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, *words, name)

    yield from walk(tree, *path)


def test_what_prints_json_takes_output_too() -> None:
    for words, command in commands(app):
        options = {o for p in command.params for o in p.opts}
        assert ("--json" in options) == ("--output" in options), words


def test_every_help_ends_with_an_example_of_that_command() -> None:
    """A command without one: add it to pdtui/cli/examples.py."""
    for words, command in commands(app):
        shown = EXAMPLES.get(words, ())
        assert shown, f"pdtui {words} has no example"
        assert any(line.startswith(f"pdtui {words}".strip()) for line in shown), words
        assert shown[0] in (command.epilog or ""), words
    assert set(EXAMPLES) == {words for words, _ in commands(app)}


def test_nobody_is_asked_where_nobody_is() -> None:
    done = CliRunner().invoke(app, ["adopt", "someone"])
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert "[cli.no_terminal]" in done.stderr


def test_the_console_needs_a_terminal() -> None:
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 2
    assert "needs a terminal" in done.stderr


def test_what_is_mistyped_is_guessed() -> None:
    assert "'apply'" in CliRunner().invoke(app, ["aply"]).stderr
    assert "--json" in CliRunner().invoke(app, ["get", "--jsn"]).stderr


def test_wide_shows_more_of_groups_and_hosts() -> None:
    one = typer.Typer()
    group = GroupView(name="chat", mode="vllm-nixl", engine="vllm", model="/m/Q", version=3,
                      revision="", status="Pending", labels={"b": "2", "a": "1"})  # fmt: skip
    host = HostView(name="n1", address="::1", port=22, runtime="docker", state="up",
                    port_range=(40000, 40063))  # fmt: skip

    def things(json: Json = False) -> None:
        print_table(*group_rows([group]))
        print_table(*host_rows([host]))

    one.command()(shaped(things))
    narrow = CliRunner().invoke(one, []).stdout
    broad = CliRunner().invoke(one, ["-o", "wide"]).stdout
    for word in ("/m/Q", "a=1,b=2", "docker", "40000-40063"):
        assert word in broad
        assert word not in narrow


def test_one_line_is_redrawn_on_a_terminal_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    group = GroupView(name="chat", mode=None, engine="vllm", model="/m", version=1, revision="",
                      status="Pending")  # fmt: skip
    screen, pipe = Terminal(), io.StringIO()
    for stream in (screen, pipe):
        progress = Progress(named=True, stream=stream)
        progress(group)
        progress(group)
        progress(group.model_copy(update={"status": "Running"}))
    clear_line()
    drawn = screen.getvalue().split("\r\x1b[K")
    assert [text[9:] for text in drawn[1:-1]] == ["chat: Pending: ", "chat: Running: "]
    assert drawn[-1] == ""
    assert "\n" not in screen.getvalue()
    assert pipe.getvalue() == "  chat: Pending: \n  chat: Running: \n"


@pytest.mark.parametrize(
    ("values", "meant"),
    [
        ({"name": "caht", "known": ["chat", "code"]}, "chat"),
        ({"host": "gpu1", "known": ["gpu-1"]}, "gpu-1"),
        ({"name": "xyz", "known": ["chat"]}, ""),
        ({"name": "chat"}, ""),
    ],
)
def test_a_name_nearly_right_is_guessed(
    capsys: pytest.CaptureFixture[str], values: dict[str, Any], meant: str
) -> None:
    complain_of(Problem(rule="x", message="there is none.", values=values, remedy="List them."))
    said = f"Did you mean '{meant}'? " if meant else ""
    assert capsys.readouterr().err.splitlines() == [
        "error: there is none.", f"       {said}List them.", "       [x]",
    ]  # fmt: skip
