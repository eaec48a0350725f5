"""Small changes of a program, each of which a test ought to notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from types import CodeType

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
REACHED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
METHODS = {"lower": "upper", "upper": "lower", "strip": "lstrip", "lstrip": "rstrip",
           "rstrip": "lstrip", "removeprefix": "removesuffix", "removesuffix": "removeprefix",
           "startswith": "endswith", "endswith": "startswith", "any": "all", "all": "any",
           "min": "max", "max": "min"}  # fmt: skip
NOT_RUN = {"annotation", "returns", "decorator_list", "type_params"}
"""Fields that say what a thing is and do nothing."""
WIDTH, AROUND = 140, 40
"""Characters of a statement that is shown whole, and of what is shown around a change."""


@dataclass(frozen=True)
class Mutant:
    """One change: where, in which function (empty: outside of any), and what it reads like.

    `lines` are those of the changed statement, a block under it left out.

    `code` is the module with the change in it; of a change in a function only what stands around.
    """

    module: str
    line: int
    lines: range
    function: str
    change: str
    code: CodeType

    @property
    def name(self) -> str:
        """Alike in every run while the module is the same."""
        return f"{self.module.rpartition('.')[2]}:{self.line} {self.function or 'module'}"


@dataclass(frozen=True)
class _Place:
    """A node that can be exchanged: the statement around it is what is shown."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.stmt
    function: str

    def put(self, node: ast.AST | None) -> None:
        """Exchanges the node; None takes it out of its list."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        elif node is None:
            del getattr(self.parent, self.field)[self.index]
        else:
            getattr(self.parent, self.field)[self.index] = node

    def back(self, node: ast.AST | None) -> None:
        """Undoes `put(node)`."""
        if node is None:
            getattr(self.parent, self.field).insert(self.index, self.node)
        else:
            self.put(self.node)


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a module's source, in order."""
    tree = ast.parse(source)
    for top in tree.body:
        if _only_said(top):
            continue
        defines = isinstance(top, ast.FunctionDef | ast.ClassDef)
        whole = ast.Module([top], []) if defines else tree
        for place in list(_places(top, top, "")):
            for other in _others(place):
                before = _shown(place.statement)
                place.put(other)
                after = _shown(other if isinstance(other, ast.stmt) else place.statement)
                line = getattr(place.node, "lineno", place.statement.lineno)
                if after != before:
                    code = compile(ast.fix_missing_locations(whole), f"<{module}>", "exec")
                    yield Mutant(module, line, _lines(place.statement), place.function,
                                 _change(before, after), code)  # fmt: skip
                place.back(other)


def _lines(statement: ast.stmt) -> range:
    block = getattr(statement, "body", None)
    last = block[0].lineno - 1 if block else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _change(before: str, after: str) -> str:
    """Both texts, or of long ones what differs with a little around it."""
    if len(before) <= WIDTH:
        return f"{before}  ->  {after}"
    same = next(i for i, (a, b) in enumerate(zip_longest(before, after)) if a != b)
    rest = 0
    while rest < min(len(before), len(after)) - same and before[-rest - 1] == after[-rest - 1]:
        rest += 1
    first, last = max(0, same - AROUND), max(0, rest - AROUND)
    return "  ->  ".join(f"…{text[first : len(text) - last]}…" for text in (before, after))


def _places(node: ast.AST, statement: ast.stmt, function: str) -> Iterator[_Place]:
    inside = function
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        inside = f"{function}.{node.name}".lstrip(".")
    for field, value in ast.iter_fields(node):
        if field in NOT_RUN:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _only_said(child):
                continue
            around = child if isinstance(child, ast.stmt) else statement
            outside = function.rpartition(".")[0]  # defaults are worked out where it is defined
            where = outside if isinstance(node, ast.arguments) else inside
            yield _Place(child, node, field, index, around, where)
            yield from _places(child, around, where)


def _only_said(node: ast.AST) -> bool:
    """Docstrings, imports and names of types."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        types = {"Literal", "Callable", "Mapping"}
        return "__all__" in names or _text_of(node.value).partition("[")[0] in types
    return isinstance(node, ast.Import | ast.ImportFrom)


def _text_of(node: ast.AST) -> str:
    return ast.unparse(node)


def _shown(statement: ast.stmt) -> str:
    """The first line of a statement that holds others, all of another."""
    text = _text_of(statement)
    return text.partition("\n")[0] if hasattr(statement, "body") else text


def _others(place: _Place) -> Iterator[ast.AST | None]:
    """What may stand in a node's place; None where it is taken out of its list."""
    for kind, make in MAKERS:
        if isinstance(place.node, kind):
            yield from make(place)
    if isinstance(place.parent, ast.If | ast.IfExp | ast.While | ast.comprehension) and (
        place.field in {"test", "ifs"}
        and not isinstance(place.node, ast.Compare | ast.UnaryOp | ast.BoolOp)
    ):
        yield ast.UnaryOp(op=ast.Not(), operand=place.node)  # type: ignore[arg-type]
    if isinstance(place.parent, ast.Call) and place.field == "args":
        yield from _argument(place)


def _argument(place: _Place) -> Iterator[ast.AST | None]:
    if not isinstance(place.node, ast.Starred):
        yield ast.Constant(None)
    if len(getattr(place.parent, place.field)) > 1:
        yield None


def _constant(place: _Place) -> Iterator[ast.AST]:
    """A sentence in a table is no part of what the program does."""
    value = place.node.value  # type: ignore[attr-defined]
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and not (place.function == "" and " " in value):
        yield ast.Constant(f"XX{value}XX")


def _compare(place: _Place) -> Iterator[ast.AST]:
    node: ast.Compare = place.node  # type: ignore[assignment]
    for index, op in enumerate(node.ops):
        ops = [*node.ops]
        ops[index] = COMPARED[type(op)]()
        yield ast.Compare(node.left, ops, node.comparators)


def _boolean(place: _Place) -> Iterator[ast.AST]:
    node: ast.BoolOp = place.node  # type: ignore[assignment]
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _unary(place: _Place) -> Iterator[ast.AST]:
    node: ast.UnaryOp = place.node  # type: ignore[assignment]
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _binary(place: _Place) -> Iterator[ast.AST]:
    node: ast.BinOp = place.node  # type: ignore[assignment]
    if type(node.op) in REACHED:
        yield ast.BinOp(node.left, REACHED[type(node.op)](), node.right)


def _name_or_method(place: _Place) -> Iterator[ast.AST]:
    node = place.node
    if not isinstance(place.parent, ast.Call) or place.field != "func":
        return
    if isinstance(node, ast.Attribute) and node.attr in METHODS:
        yield ast.Attribute(node.value, METHODS[node.attr], node.ctx)
    if isinstance(node, ast.Name) and node.id in METHODS:
        yield ast.Name(METHODS[node.id], node.ctx)


def _given(place: _Place) -> Iterator[ast.AST]:
    """A value that is assigned or answered becomes None, and None something else."""
    node = copy.copy(place.node)
    value = node.value  # type: ignore[attr-defined]
    if value is None:
        return
    none = isinstance(value, ast.Constant) and value.value is None
    node.value = ast.Constant("" if none else None)  # type: ignore[attr-defined]
    yield node


def _statement(place: _Place) -> Iterator[ast.AST]:
    yield ast.Pass()


def _keyword(place: _Place) -> Iterator[ast.AST | None]:
    node: ast.keyword = place.node  # type: ignore[assignment]
    if not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield ast.keyword(node.arg, ast.Constant(None))
    if node.arg is not None:
        yield None


def _left(place: _Place) -> Iterator[ast.AST]:
    yield ast.Return(None) if isinstance(place.node, ast.Break) else ast.Break()


def _lambda(place: _Place) -> Iterator[ast.AST]:
    node: ast.Lambda = place.node  # type: ignore[assignment]
    yield ast.Lambda(node.args, ast.Constant(None))


MAKERS: tuple[tuple[type | tuple[type, ...], Callable[[_Place], Iterator[ast.AST | None]]], ...] = (
    (ast.Constant, _constant),
    (ast.Compare, _compare),
    (ast.BoolOp, _boolean),
    (ast.UnaryOp, _unary),
    (ast.BinOp, _binary),
    ((ast.Attribute, ast.Name), _name_or_method),
    ((ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return), _given),
    (ast.Expr, _statement),
    (ast.keyword, _keyword),
    ((ast.Break, ast.Continue), _left),
    (ast.Lambda, _lambda),
)
