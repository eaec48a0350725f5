"""Placeholders: `{{name}}`, `{{ports.prometheus}}`; double braces, dotted words, no inner spaces.

Rendering is one pass: what a value holds is never rendered again. A string that is nothing but one
placeholder takes the type of its value (ports stay numbers in JSON); with any text around it the
result is text. In JSON and environment templates a key that ends in `?` is left out while a
placeholder of its value has no value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backend.domain.engine_args import parse_json
from backend.domain.errors import Problem, Refused
from backend.domain.references import is_reference

PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}\}")
SPACED = re.compile(r"\{\{\s+[\w.-]+\s*\}\}|\{\{\s*[\w.-]+\s+\}\}")


def names(node: Any) -> Iterator[str]:
    """Every placeholder name in a template of any shape, in order."""
    if isinstance(node, str):
        yield from PLACEHOLDER.findall(node)
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            yield from names(key)
            yield from names(inner)
    elif isinstance(node, Sequence):
        for inner in node:
            yield from names(inner)


class Renderer:
    """Renders templates against one scope and remembers what it could not fill.

    A name absent from the scope, or present with None, has no value. `hints` say what to do about
    a known name that has none.
    """

    def __init__(self, scope: Mapping[str, Any], hints: Mapping[str, str] | None = None) -> None:
        self.scope = dict(scope)
        self.hints = hints or {}
        self._missing: dict[str, str] = {}

    def text(self, template: str, where: str) -> str:
        """`template` as text; a list is joined by commas. What is kept elsewhere stays as it is."""
        if is_reference(template):
            return template

        def fill(match: re.Match[str]) -> str:
            found = self.scope.get(match[1])
            if found is None:
                self._missing.setdefault(match[1], where)
                return match[0]
            return _plain(found)

        return PLACEHOLDER.sub(fill, template)

    def tokens(self, template: str, where: str) -> list[str]:
        """`template` as argv tokens: one, except that a lone list placeholder gives one each.

        A token that is a JSON object or array (or `--flag={...}`) is rendered as JSON, typed.
        """
        lone = PLACEHOLDER.fullmatch(template)
        if lone and isinstance(self.scope.get(lone[1]), list | tuple):
            return [_plain(v) for v in self.scope[lone[1]]]
        if not PLACEHOLDER.search(template):
            return [template]
        head, equals, tail = template.partition("=")
        if equals and head.startswith("-"):
            return [head + "=" + self._argument(tail, where)]
        return [self._argument(template, where)]

    def _argument(self, template: str, where: str) -> str:
        if template.lstrip()[:1] in ("{", "["):
            try:
                return compact(self.data(parse_json(template), where))
            except (ValueError, RecursionError):
                pass  # not JSON, or only once it is filled in: plain text
        return self.text(template, where)

    def argv(self, templates: Sequence[str], where: str) -> list[str]:
        """Every template's tokens."""
        return [t for template in templates for t in self.tokens(template, where)]

    def data(self, node: Any, where: str) -> Any:
        """`node` with its strings rendered, typed."""
        if isinstance(node, str):
            lone = PLACEHOLDER.fullmatch(node)
            found = self.scope.get(lone[1]) if lone else None
            return self.text(node, where) if found is None else found
        if isinstance(node, Mapping):
            return {
                key.removesuffix("?"): self.data(inner, where)
                for key, inner in node.items()
                if not (key.endswith("?") and self.lacks(inner))
            }
        if isinstance(node, list | tuple):
            return [self.data(inner, where) for inner in node]
        return node

    def extend(self, scope: Mapping[str, Any]) -> None:
        """Add names found out on the way."""
        self.scope.update(scope)

    def lacks(self, node: Any) -> bool:
        """Whether some placeholder of `node` has no value."""
        return any(self.scope.get(n) is None for n in names(node))

    def finish(self, what: str) -> None:
        """Raise Refused (`render.placeholder`) naming each placeholder left without a value."""
        if not self._missing:
            return
        problems = [self._problem(name, where, what) for name, where in self._missing.items()]
        raise Refused(*problems)

    def _problem(self, name: str, where: str, what: str) -> Problem:
        known = name in self.scope
        remedy = self.hints.get(name) or (
            "It has no value here."
            if known
            else "Known names: " + ", ".join(sorted(self.scope)) + ". To pass double braces on "
            "as they are, write a space inside them."
        )
        verb = "has no value" if known else "is not a known placeholder"
        return Problem(
            rule="render.placeholder",
            message=f"{{{{{name}}}}} in {where} of {what} {verb}.",
            remedy=remedy,
            values={"placeholder": name, "where": where, "instance": what},
        )


def compact(data: Any) -> str:
    """JSON without spaces, keys in their order, no escapes for plain unicode."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _plain(found: Any) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, list | tuple):
        return ",".join(_plain(v) for v in found)
    if isinstance(found, dict):
        return compact(found)
    return str(found)
