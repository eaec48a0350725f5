"""docs/document.md: every field of the three kinds of documents, from their models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from backend.domain.caches import CacheSpec
from backend.domain.deployment import (
    ConnectorExtra,
    Disaggregation,
    HostSelector,
    KvCache,
    MemberRole,
    Metadata,
    Pin,
    RouterRole,
    Schedule,
    Spec,
)
from backend.domain.host import Host
from docs.pages.about_fields import ABOUT

HEAD = """\
# Documents

Generated from the models by `make docs`; do not edit. The tables' words are in
`docs/pages/about_fields.py`.

A document is YAML or JSON, the same in files, in the API and in the store. A file may hold several,
with `---` between them. `kind` is `Deployment`, `CacheService` or `Host`; `apiVersion` is
`pdtui/v1`. A field that does not exist, and a key that is written twice, is an error that names the
line. `pdtui check FILE` judges a document without saving it ([the rules](rules.md)).

## Inheritance

A role's field that is left out or `null` inherits the deployment's value. Any other value, `{}`,
`[]` and `""` too, replaces it **whole**: environments and parameters are never merged.

```yaml
spec:
  parameters: [--max-model-len, "32768", --dtype, bfloat16]
  roles:
    decode:
      parameters: [--max-model-len, "32768"]   # no --dtype here
```
"""
PARTS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("metadata", "metadata", Metadata),
    ("spec", "spec", Spec),
    ("disaggregation", "spec.disaggregation", Disaggregation),
    ("connector-extra", "spec.disaggregation.connector_extra", ConnectorExtra),
    ("prefill-and-decode", "spec.roles.prefill and spec.roles.decode", MemberRole),
    ("router", "spec.roles.router", RouterRole),
    ("hosts", "hosts, of the deployment or a role", HostSelector),
    ("placement", "an item of placement", Pin),
    ("extended-kv-cache", "extended_kv_cache, of the deployment or a role", KvCache),
    ("scaling-schedule", "an item of spec.scaling_schedule", Schedule),
)


def page() -> str:
    """The whole page."""
    lines = [HEAD, "## Deployment"]
    for _, title, model in PARTS:
        lines += ["", f"### {title}", "", *_table(model)]
    lines += ["", "## CacheService", "", "What roles attach to with `extended_kv_cache: {kind: "
              "service, service: NAME}`; see [caches](caches.md).", "", "### spec", "",
              *_table(CacheSpec)]  # fmt: skip
    lines += ["", "## Host", "", "An inventory entry; `name` and `labels` stand in `metadata`, the "
              "rest in `spec`. `pdtui hosts add` writes the same.", "", *_table(Host)]  # fmt: skip
    return "\n".join(lines) + "\n"


def fields() -> Iterator[tuple[str, str]]:
    """Model and field of every row of the page."""
    for model in (*(m for _, _, m in PARTS), CacheSpec, Host):
        for name in model.model_fields:
            yield model.__name__, name


def _table(model: type[BaseModel]) -> Iterator[str]:
    yield "| field | type | default | |"
    yield "|---|---|---|---|"
    for name, field in model.model_fields.items():
        about = ABOUT[model.__name__].get(name) or ABOUT["Overridable"].get(name)
        if about is None:
            raise KeyError(f"say what {model.__name__}.{name} is for: docs/pages/about_fields.py")
        shown = field.alias or name
        yield f"| `{shown}` | {_type(field)} | {_default(field)} | {about} |"


def _type(field: FieldInfo) -> str:
    return f"{_named(field.annotation)}{_bounds(field.metadata)}".replace("|", "\\|")


def _named(kind: Any) -> str:
    words = {str: "text", int: "number", float: "number", bool: "true or false", Any: "anything"}
    if kind in words:
        return words[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(kind, "__metadata__"):
        return f"{_named(inner[0])}{_bounds(_constraints(kind.__metadata__))}"
    if origin is Literal:
        return ", ".join(f"`{v}`" for v in inner)
    if origin in (list, tuple):
        if origin is tuple and Ellipsis not in inner:
            return f"list of {len(inner)} {_named(inner[0])}s"
        return f"list of {_named(inner[0])}"
    if origin is dict:
        return f"mapping of {_named(inner[1])}"
    if inner:  # a union; null is told by the default
        return " or ".join(_named(i) for i in inner if i is not type(None))
    return "mapping"


def _constraints(metadata: Any) -> list[Any]:
    return [c for m in metadata for c in (m.metadata if isinstance(m, FieldInfo) else (m,))]


def _bounds(metadata: Any) -> str:
    said = []
    for bound in metadata:
        if isinstance(bound, Ge):
            said.append(f"from {bound.ge}")
        elif isinstance(bound, Gt):
            said.append(f"above {bound.gt}")
        elif isinstance(bound, Le):
            said.append(f"to {bound.le}")
        elif isinstance(bound, MinLen):
            said.append("not empty")
    return f" {' '.join(said)}" if said else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return ""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    return f"`{json.dumps(value)}`"
