"""docs/api.md: every request the backend answers, from its own OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from backend.api.app import create_app
from backend.services.backend import Backend
from pdtui import __version__

HEAD = """\
# API

Generated from the application by `make docs`; do not edit. A running backend serves the same as
OpenAPI at `{openapi}`, with every schema whole.

The backend answers on a Unix socket that only its owner can open, and with `pdtui daemon --listen`
on TCP, there only to callers with a token (`pdtui tokens add`). Bodies are JSON. An error is
`application/problem+json` with a list of problems: rule id, path, both values and the remedy.

```
curl --unix-socket "$XDG_RUNTIME_DIR"/pdtui/*.sock http://pdtui/{version}/groups
```
"""
METHODS = ("get", "post", "put", "patch", "delete")


def page() -> str:
    """The whole page."""
    app = create_app(cast("Backend", None), __version__)
    described = app.openapi()
    openapi = app.openapi_url or ""
    lines = [HEAD.format(openapi=openapi, version=openapi.split("/")[1])]
    lines += ["| request | does |", "|---|---|"]
    found = list(_requests(described))
    lines += [f"| `{m.upper()} {path}` | {_summary(about)} |" for m, path, about in found]
    for method, path, about in found:
        lines += ["", *_section(method, path, about)]
    return "\n".join(lines) + "\n"


def _requests(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method, path, methods[method]


def _summary(about: dict[str, Any]) -> str:
    text = about.get("description") or about.get("summary") or ""
    return _line(text.partition("\n\n")[0].partition(". ")[0])


def _section(method: str, path: str, about: dict[str, Any]) -> Iterator[str]:
    yield f"## {method.upper()} {path}"
    yield ""
    yield about.get("description") or about.get("summary") or ""
    parameters = about.get("parameters", [])
    if parameters:
        yield from ["", "| parameter | in | |", "|---|---|---|"]
    for parameter in parameters:
        kind = _type(parameter.get("schema", {}))
        note = " ".join(
            n for n in (parameter.get("description", ""), kind,
                        "required" if parameter.get("required") else "") if n
        )  # fmt: skip
        yield f"| `{parameter['name']}` | {parameter['in']} | {_line(note)} |"
    body = about.get("requestBody", {}).get("content", {})
    for media, content in body.items():
        yield from ["", f"Body: `{media}`, {_type(content.get('schema', {}))}."]
        yield from _example(content)
    for status, answer in about.get("responses", {}).items():
        if not status.startswith("2"):
            continue  # problems, all of one shape
        contents = answer.get("content", {}).values()
        shapes = [s for c in contents if (s := _type(c.get("schema", {})))]
        yield from ["", f"Answer {status}: {', '.join(shapes) or 'nothing'}."]
        for content in contents:
            yield from _example(content)


def _example(content: dict[str, Any]) -> Iterator[str]:
    found = content.get("example")
    if found is None:
        for example in content.get("examples", {}).values():
            found = example.get("value")
            break
    if found is not None:
        yield from ["", "```json", json.dumps(found, indent=1, ensure_ascii=False), "```"]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(s) for s in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'anything'}"
    if "enum" in schema:
        return " or ".join(f"`{v}`" for v in schema["enum"])
    return str(schema.get("type", ""))


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
