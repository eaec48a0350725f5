"""Files and functions stay small enough to be read at once; words that mislead stay out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("pdtui", "backend", "modes", "screenshots", "tests")
FILE_LINES = 400
FUNCTION_LINES = 60

ALLOWED: dict[str, str] = {}
"""`path` or `path::function` -> why it may be longer. Keep it short; an entry that is not needed
any more fails."""


def modules() -> list[Path]:
    """Every Python file of the project."""
    return sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))


def functions(tree: ast.AST, scope: str = "") -> Iterator[tuple[str, int]]:
    """Qualified name and number of lines of each function, docstring and decorators left out."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = f"{scope}{node.name}" if named else scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
            first = body[0].lineno if body else node.lineno
            yield name, (node.end_lineno or first) - first + 1
        yield from functions(node, f"{name}." if named else scope)


def too_long() -> dict[str, int]:
    """Everything over its limit, by `path` or `path::function`, with its number of lines."""
    found: dict[str, int] = {}
    for path in modules():
        text = path.read_text(encoding="utf-8")
        where = str(path.relative_to(ROOT))
        if (lines := text.count("\n")) > FILE_LINES:
            found[where] = lines
        for name, length in functions(ast.parse(text)):
            if length > FUNCTION_LINES:
                found[f"{where}::{name}"] = length
    return found


def test_files_and_functions_are_short() -> None:
    found = too_long()
    extra = {where: lines for where, lines in found.items() if where not in ALLOWED}
    assert not extra, f"over {FILE_LINES} lines a file or {FUNCTION_LINES} a function: {extra}"
    assert not (unneeded := ALLOWED.keys() - found), f"no longer too long: {unneeded}"


def test_there_is_something_to_measure() -> None:
    assert len(modules()) > 20


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_long_function_is_found(kind: str) -> None:
    body = "\n".join("        x = 1" for _ in range(FUNCTION_LINES + 1))
    source = f'class C:\n    {kind} f(self):\n        """Doc."""\n{body}\n'
    assert list(functions(ast.parse(source))) == [("C.f", FUNCTION_LINES + 1)]


def test_digits_are_those_that_make_a_number() -> None:
    """str.isdigit holds for '²' too, which int() refuses; str.isdecimal is meant."""
    product = [p for p in modules() if p.relative_to(ROOT).parts[0] in ("pdtui", "backend")]
    assert [p for p in product if ".isdigit(" in p.read_text(encoding="utf-8")] == []
