"""YAML and JSON texts as plain data, with the line of everything: the one reader of both.

What is read is what JSON can say: mappings with text keys, lists, text, finite numbers, true, false
and null. The words are YAML 1.2's: `on` and `no` are text, and so are dates and `12:30`. A key
written twice, an anchor inside itself, and whatever else has no such meaning is a `Mistake` with
its line. Several documents of one text are read each on its own: a broken one hides no other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor

MOST_NODES = 200_000
"""Values of a document once every alias is written out."""
MOST_DEPTH = 100
"""Levels of nesting."""

Keys = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BEGIN = re.compile(r"^---(?=\s|$)", re.M)
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?[eE][+-]?\d+")
"""Numbers with an exponent, as JSON and YAML 1.2 write them; YAML 1.1 took most for text."""
_DIRECTIVES = re.compile(r"(?:\s*(?:[%#].*)?(?:\n|$))*")


class Mistake(ValueError):
    """Why a text is no plain data: `why` at `line` and `column`, both counted from 1."""

    def __init__(self, why: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"{line}:{column}: {why}")
        self.why, self.line, self.column = why, line, column


@dataclass(frozen=True)
class Document:
    """One document: its data, or the mistake that keeps it from being read.

    `line` is where it begins; `lines` has the line of every value by its keys.
    """

    data: Any = None
    line: int = 1
    lines: Mapping[Keys, int] = field(default_factory=dict)
    mistake: Mistake | None = None

    def line_of(self, keys: Keys) -> int:
        """The line of the value at `keys`, or of the nearest part that holds it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, self.line)


def read_all(text: str) -> tuple[Document, ...]:
    """Every document of a text that holds something, mistakes included. Raises nothing."""
    return tuple(d for start, piece in _pieces(text) for d in _documents(piece, start))


def read_one(text: str) -> Any:
    """The data of a text's only document; None where there is none. Raises Mistake."""
    found = read_all(text)
    for document in found:
        if document.mistake is not None:
            raise document.mistake
    if len(found) > 1:
        raise Mistake("a second document begins here", found[1].line)
    return found[0].data if found else None


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Each document's text and the lines before it; directives go with what follows them."""
    marks = [m.start() for m in _BEGIN.finditer(text)]
    if marks and _DIRECTIVES.fullmatch(text, 0, marks[0]):
        marks = marks[1:]
    for start, end in pairwise([0, *marks, len(text)]):
        if end > start:
            yield text.count("\n", 0, start), text[start:end]


def _documents(text: str, before: int) -> Iterator[Document]:
    try:
        try:
            nodes = list(yaml.compose_all(text, Loader=_FAST))
        except (yaml.YAMLError, ValueError):  # the slow one reads JSON's escapes, and says more
            nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        yield _broken(_mistake(error, text), before)
    except (ValueError, RecursionError) as error:
        yield _broken(Mistake(_why(error)), before)
    else:
        for node in nodes:
            document = _document(node, before)
            if document.mistake is not None or document.data is not None:
                yield document


def _document(node: yaml.Node, before: int) -> Document:
    builder = _Builder(before)
    try:
        data = builder.plain(node, ())
    except Mistake as mistake:
        return _broken(mistake, before)
    return Document(data, _line(node) + before, builder.lines)


def _broken(mistake: Mistake, before: int) -> Document:
    moved = Mistake(mistake.why, mistake.line + before, mistake.column)
    return Document(line=before + 1, mistake=moved)


def _mistake(error: yaml.YAMLError, text: str) -> Mistake:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        why = getattr(error, "problem", None) or "it is not YAML"
        return Mistake(str(why), mark.line + 1, mark.column + 1)
    at = getattr(error, "position", 0)
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return Mistake(str(getattr(error, "reason", error)).rstrip("."), line, column)


def _why(error: BaseException) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Builder(SafeConstructor):
    """Plain data of a node tree, noting the line of every value."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self.lines: dict[Keys, int] = {}
        self._before, self._nodes = before, 0
        self._open: set[int] = set()
        self._flat: set[int] = set()

    def plain(self, node: yaml.Node, keys: Keys) -> Any:
        """`node` as plain data; `keys` is its path. Raises Mistake."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise _at(node, f"it is more than {MOST_NODES} values once its aliases are written out")
        if id(node) in self._open:
            raise _at(node, "an anchor contains itself, so once its aliases are written out it "
                      "has no end")  # fmt: skip
        if len(keys) > MOST_DEPTH:
            raise _at(node, f"it is nested more than {MOST_DEPTH} levels deep")
        self.lines.setdefault(keys, _line(node) + self._before)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                self._only(node, "seq")
                return [self.plain(n, (*keys, i)) for i, n in enumerate(node.value)]
            if isinstance(node, yaml.MappingNode):
                self._only(node, "map")
                return self._mapping(node, keys)
            return self._scalar(node)
        finally:
            self._open.remove(id(node))

    def _only(self, node: yaml.Node, kind: str) -> None:
        if node.tag != _TAG + kind:
            raise _at(node, f"could not determine what {_short(node.tag)} is to mean here")

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, Any]:
        if id(node) not in self._flat:
            self._flat.add(id(node))
            self._no_duplicates(node)
            self._merge(node)
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = self._key(key_node)
            self.lines[(*keys, name)] = _line(key_node) + self._before
            result[name] = self.plain(value_node, (*keys, name))
        return result

    def _key(self, node: yaml.Node) -> str:
        name = self._scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(name, str):
            said = node.value if isinstance(node, yaml.ScalarNode) else "of several parts"
            raise _at(node, f"the key {said!r} must be text: write it in quotes")
        return name

    def _merge(self, node: yaml.MappingNode) -> None:
        try:
            self.flatten_mapping(node)
        except ConstructorError as error:
            raise _at(node, str(error.problem)) from None
        except RecursionError:
            raise _at(node, "an anchor contains itself") from None

    def _no_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}merge" or not isinstance(key_node, yaml.ScalarNode):
                continue
            key, line = str(key_node.value), _line(key_node) + self._before
            if key in seen:
                raise _at(key_node, f"the key {key!r} is written twice, first on line {seen[key]}")
            seen[key] = line

    def _scalar(self, node: yaml.Node) -> Any:
        tag, text = node.tag, node.value
        kind = tag.removeprefix(_TAG)
        if kind == "timestamp" or (kind in ("int", "float") and ":" in text):
            return text
        if kind == "bool" and text.casefold() not in ("true", "false"):
            return text
        if kind == "str" and not getattr(node, "style", None) and NUMBER.fullmatch(text):
            kind, node = "float", yaml.ScalarNode(f"{_TAG}float", text, node.start_mark)
        if kind == "str":
            return _joined(text)
        if kind not in ("null", "bool", "int", "float"):
            raise _at(node, f"could not determine what {_short(tag)} is to mean here")
        try:
            value = self.construct_object(node, deep=True)
        except (ConstructorError, ValueError, KeyError, TypeError, AttributeError):
            raise _at(node, f"{text[:40]!r} is no {kind}") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise _at(node, f"{text!r} is no finite number")
        return value


def _at(node: yaml.Node, why: str) -> Mistake:
    return Mistake(why, _line(node), int(node.start_mark.column) + 1)


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def _joined(text: str) -> str:
    """The text with the surrogate pairs of JSON's `\\ud83c\\udf89` joined to one character."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
