"""What a caller who may only read sees of a document."""

from __future__ import annotations

from typing import Any

from backend.domain.access import Caller
from backend.domain.secrets import masked


def shown_to(caller: Caller, document: dict[str, Any]) -> dict[str, Any]:
    """The document, without its secrets for a caller of the role `read`."""
    return masked(document) if caller.role == "read" else document
