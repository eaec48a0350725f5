"""The kinds of documents there are: each told by its `kind`, and read by its own model."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from backend.domain.caches import CacheDocument, parse_cache
from backend.domain.deployment import Deployment
from backend.domain.documents import explain, parse_deployment, refuse_unfit
from backend.domain.errors import Invalid
from backend.domain.host import Host
from backend.domain.value import Value

Kind = Literal["Host", "CacheService", "Deployment"]
KINDS: tuple[Kind, ...] = ("Host", "CacheService", "Deployment")
"""In the order in which they are saved: what others refer to comes first."""

_OWN = ("name", "labels")


class HostMetadata(Value):
    """Name and labels of an inventory entry."""

    model_config = ConfigDict(extra="forbid")

    name: str
    labels: dict[str, str] = Field(default_factory=dict)


class HostDocument(Value):
    """An inventory entry as a document: `metadata` has its name and labels, `spec` the rest."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    api_version: Annotated[Literal["pdtui/v1"], Field(alias="apiVersion")] = "pdtui/v1"
    kind: Literal["Host"] = "Host"
    metadata: HostMetadata
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        """The host's name."""
        return self.metadata.name

    def host(self) -> Host:
        """The inventory entry. Raises Invalid with a problem per wrong field of `spec`."""
        own = [n for n in _OWN if n in self.spec]
        if own:
            raise Invalid.of(
                "structure.unknown_field",
                f"there is no field {own[0]!r} here: it belongs to metadata.",
                path=f"spec.{own[0]}",
                values={"field": own[0]},
                remedy=f"Move it to metadata.{own[0]}.",
            )
        try:
            return Host.model_validate({**self.spec, **self.metadata.model_dump()})
        except ValidationError as error:
            found = explain(error, Host).problems
            moved = (p.model_copy(update={"path": _path(p.path)}) for p in found)
            raise Invalid(*moved) from None

    def document(self) -> dict[str, Any]:
        """The document as plain data, defaults left out, as a file holds it."""
        body = self.model_dump(by_alias=True, exclude_defaults=True, mode="json")
        return {"apiVersion": self.api_version, "kind": self.kind, **body}


AnyDocument = Deployment | CacheDocument | HostDocument


def kind_of(data: object) -> Kind:
    """What a document says it is; a deployment where it says nothing.

    Raises Invalid (`structure.document`, `structure.kind`).
    """
    if not isinstance(data, Mapping):
        parse_deployment(data)  # says what it is instead
        raise AssertionError("only a mapping is a document")
    kind = data.get("kind", "Deployment")
    if kind in KINDS:
        return kind  # type: ignore[no-any-return]
    near = difflib.get_close_matches(str(kind), KINDS, n=1)
    raise Invalid.of(
        "structure.kind",
        f"there is no kind {str(kind)[:60]!r} here.",
        path="kind",
        values={"found": str(kind)[:60], "known": list(KINDS)},
        remedy=f"Did you mean {near[0]}?" if near else f"Write one of {', '.join(KINDS)}.",
    )


def parse(data: object) -> AnyDocument:
    """The document in `data`, by its kind. Raises Invalid with a problem per wrong field."""
    kind = kind_of(data)
    if kind == "Deployment":
        return parse_deployment(data)
    refuse_unfit(data)
    return parse_cache(data) if kind == "CacheService" else parse_host(data)


def parse_host(data: object) -> HostDocument:
    """The inventory entry in `data`. Raises Invalid with a problem per wrong field."""
    try:
        document = HostDocument.model_validate(data)
    except ValidationError as error:
        raise explain(error, HostDocument) from None
    document.host()
    return document


def host_document(entry: Host) -> HostDocument:
    """An inventory entry as the document that says the same, defaults left out."""
    body = entry.model_dump(mode="json", exclude_defaults=True)
    metadata = HostMetadata(**{n: body.pop(n) for n in _OWN if n in body})
    return HostDocument(metadata=metadata, spec=body)


def _path(path: str) -> str:
    """A path in the entry as a path in the document."""
    return f"{'metadata' if path.split('.')[0] in _OWN else 'spec'}.{path}"
