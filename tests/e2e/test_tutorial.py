"""docs/tutorial.md as a newcomer follows it: typed line by line, with nothing but the wheel."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.e2e import wheel
from tests.e2e.typed import Shell, Step, missing, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


@pytest.mark.needs("curl")
def test_the_tutorial_typed_line_by_line(tmp_path: Path) -> None:
    programs = wheel.install(wheel.build(tmp_path / "dist"), tmp_path / "venv", "demo")
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8",
           "XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"]}  # fmt: skip
    shell = Shell(home, env)
    try:
        for step in steps(PAGE.read_text(encoding="utf-8")):
            if step.file:
                (home / step.file).write_text(step.text)
                continue
            said = shell.type(step.line)
            lacks = missing(step.expected, said)
            assert not lacks, f"$ {step.line}\n{said}\n--- the page shows: {lacks}"
    finally:
        if (home / "lab").exists():
            shell.type(f"pdtui practice stop {shlex.quote(str(home / 'lab'))}; kill %1 || true")
        shell.close()


def test_a_page_is_read_as_it_is_meant() -> None:
    page = (
        "Save this as `a.yaml`:\n```yaml\nx: 1\n```\nThen:\n```console\n$ one\nsaid ... so\n$ two\n"
    )
    page += "```\n```sh\nnot typed\n```\n```yaml\nno: file\n```\n"
    assert list(steps(page)) == [
        Step(file="a.yaml", text="x: 1\n"), Step("one", ["said ... so"]), Step("two"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "said", "lacks"),
    [
        (["a ... c", "d"], "x\na  b  c\nd\n", ""),
        (["a ...", "..."], "a b\n", ""),
        (["d", "a"], "a\nd\n", "a"),
        (["a"], "a b\n", "a"),
        (["...a..."], "b a c\n", ""),
        ([], "anything", ""),
    ],
)
def test_what_is_shown_is_looked_for_in_order(expected: list[str], said: str, lacks: str) -> None:
    assert missing(expected, said) == lacks
