"""Heads of the command line's tables are in the language in use."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pdtui.cli
from pdtui.cli.output import cells, print_table
from pdtui.i18n import use
from pdtui.i18n.zh_heads import HEADS

CLI = Path(pdtui.cli.__file__).parent


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    use("en")


def heads() -> set[str]:
    """Words that stand in capitals in a tuple of the commands' modules."""
    tuples = [
        node
        for file in CLI.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Tuple)
    ]
    words = {e.value for t in tuples for e in t.elts if isinstance(e, ast.Constant)}
    return {w for w in words if isinstance(w, str) and len(w) > 1 and w == w.upper() != w.lower()}


def test_every_head_has_a_chinese_one_and_none_is_left_over() -> None:
    assert heads() == set(HEADS)


def test_a_table_in_chinese_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    use("zh")
    print_table(("NAME", "STATUS", "MY OWN"), [("qwen3-32b", "Running", "x")])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["名称", "状态", "MY", "OWN"]
    assert cells(head[: head.index("状态")]) == row.index("Running")
    use("en")
    print_table(("NAME",), [])
    assert capsys.readouterr().out == "NAME\n"
