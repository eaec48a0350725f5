"""Values kept elsewhere: a variable, a file or a command's answer on the backend's machine.

In a document such a value is a mapping of one key, `{from_env: NAME}`, `{from_file: PATH}` or
`{from_command: [PROGRAM, ARGUMENT...]}`. In memory an environment stays a mapping of texts: a
reference is a text that begins with NUL, which no document may hold, so neither is ever taken for
the other, and one that was not resolved cannot be started with.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")

MARK = "\0"
KINDS = ("from_env", "from_file", "from_command")
_INSIDE = re.compile(r"\{\s*\"?(?:from_env|from_file|from_command)\"?\s*:[^{}]*\}")
_FLOW = re.compile(r"^\{\s*\"?(from_env|from_file|from_command)\"?\s*:\s*(.+?)\s*\}$", re.DOTALL)


def encoded(value: object) -> object:
    """A reference as the text it is in memory; anything else as it is. Raises ValueError."""
    if not isinstance(value, Mapping):
        return value
    if len(value) != 1 or next(iter(value)) not in KINDS:
        raise ValueError(f"a reference is a mapping of one key: {', '.join(KINDS)}")
    ((kind, what),) = value.items()
    if kind == "from_command":
        if not isinstance(what, list | tuple) or not what:
            raise ValueError("from_command is a list: a program and its arguments")
        if not all(isinstance(w, str) and w for w in what):
            raise ValueError("from_command is a list of texts, none of them empty")
    elif not isinstance(what, str) or not what:
        raise ValueError(f"{kind} is a text that is not empty")
    if kind == "from_env" and not ENV_NAME.match(str(what)):
        raise ValueError(f"{what!r} is no environment variable name")
    if kind == "from_file" and not str(what).startswith(("/", "~/")):
        raise ValueError("from_file is a path from the root (/...) or from home (~/...)")
    return MARK + json.dumps({kind: what}, ensure_ascii=False)


def is_reference(text: str) -> bool:
    """Whether a value in memory is a reference."""
    return text.startswith(MARK)


def decoded(text: str) -> str | dict[str, Any]:
    """A value as a document has it."""
    if not is_reference(text):
        return text
    found: dict[str, Any] = json.loads(text[1:])
    return found


def references(env: Mapping[str, str] | None) -> frozenset[str]:
    """The references of an environment, as they are in memory."""
    return frozenset(v for v in (env or {}).values() if is_reference(v))


def literal(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what is kept elsewhere."""
    return {k: v for k, v in env.items() if not is_reference(v)}


def plain(env: Mapping[str, str]) -> dict[str, Any]:
    """The environment as a document has it."""
    return {k: decoded(v) for k, v in env.items()}


def said(reference: str) -> str:
    """A reference on one line, as a form takes it: `{from_env: NAME}`."""
    return written(json.loads(reference[1:]))


def written(value: Mapping[str, Any]) -> str:
    """The mapping of a reference on one line."""
    ((kind, what),) = value.items()
    text = shlex.join(what) if isinstance(what, list | tuple) else str(what)
    return f"{{{kind}: {text}}}"


def read(text: str) -> str | dict[str, Any]:
    """What a line in a form stands for: a reference, or the text itself."""
    found = _FLOW.match(text.strip())
    if found is None:
        return text
    kind, what = found[1], found[2]
    if kind != "from_command":
        return {kind: what.strip("\"'")}
    try:
        return {kind: json.loads(what) if what.startswith("[") else shlex.split(what)}
    except ValueError:
        return text


def new_references(new: Iterable[str], old: Iterable[str]) -> list[str]:
    """References that were not there before, on one line each."""
    return sorted(said(r) for r in set(new) - set(old))


def misplaced(
    value: object, at: tuple[int | str, ...] = (), seen: frozenset[int] = frozenset()
) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Path and one line of each reference in a document that nobody would look up: a mapping
    outside of an environment, or anywhere one that quotes have made a text of."""
    if isinstance(value, str):
        found = _INSIDE.search(value)
        if found is not None:
            yield at, found[0]
        return
    if not isinstance(value, Mapping | list | tuple) or id(value) in seen:
        return
    seen |= {id(value)}
    if isinstance(value, Mapping):
        kind = next(iter(value), None)
        if len(value) == 1 and kind in KINDS:
            if at[-2:-1] != ("env",):
                yield at, f"{{{kind}: …}}"
            return
    inner = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, each in inner:
        yield from misplaced(each, (*at, key if isinstance(key, int) else str(key)), seen)


EnvText = Annotated[
    str,
    BeforeValidator(encoded),
    PlainSerializer(decoded, return_type=Any),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                    "properties": {
                        "from_env": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                        "from_file": {"type": "string", "pattern": "^(/|~/)"},
                        "from_command": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "minLength": 1},
                        },
                    },
                },
            ]
        }
    ),
]
"""One variable's value in a document: a text, or a reference to where it is kept."""
