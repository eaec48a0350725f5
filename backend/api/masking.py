"""What a caller sees of a document's secrets, and whom the backend fetches values for."""

from __future__ import annotations

from typing import Any

from backend.domain.access import Caller
from backend.domain.deployment import Deployment
from backend.domain.errors import Denied
from backend.domain.group import Group
from backend.domain.references import new_references, references
from backend.domain.secrets import masked


def shown_to(caller: Caller, document: dict[str, Any]) -> dict[str, Any]:
    """The document, without its secrets for a caller of the role `read`."""
    return masked(document) if caller.role == "read" else document


def may_refer(caller: Caller, document: Deployment, saved: Group | None) -> None:
    """Raises Denied (`access.reference`) when a caller who is no `admin` names a variable, file or
    command of the backend's machine that the saved document does not name: it would be read, or
    run, as the backend's user."""
    if caller.role == "admin":
        return
    fresh = new_references(_of(document), _of(saved.document) if saved else ())
    if fresh:
        raise Denied.of(
            "access.reference",
            f"{fresh[0]} would be fetched on the backend's own machine, which only a caller of "
            f"the role admin may ask for; {caller.name} has {caller.role}.",
            values={"references": fresh, "has": caller.role},
            remedy="Let the backend's owner save the reference first, or give the value itself.",
        )


def _of(document: Deployment) -> frozenset[str]:
    return frozenset().union(*(references(e) for e in document.spec.environments()))
