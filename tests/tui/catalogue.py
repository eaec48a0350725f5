"""The shipped modes as the backend's API shows them, and its rules, without a backend."""

from __future__ import annotations

from functools import cache
from typing import Any

from backend.adapters.recipes import builtin_path, load_catalogue
from backend.domain.catalogue import Catalogue
from backend.domain.documents import parse_deployment
from backend.domain.errors import Problem
from backend.domain.rules.known import Known
from backend.domain.rules.routing import settled
from backend.domain.rules.table import judge
from backend.domain.views import ModeView
from backend.services.pictures import mode_view


@cache
def catalogue() -> Catalogue:
    """The shipped catalogue."""
    return load_catalogue([builtin_path()])


def modes() -> tuple[ModeView, ...]:
    """Its modes as `GET /v1/modes` answers."""
    return tuple(mode_view(m) for m in catalogue().modes.values())


def judged(document: dict[str, Any]) -> list[Problem]:
    """What `POST /v1/check` finds where no host is known. Raises Invalid."""
    known = Known(catalogue(), inventory=False)
    return list(judge(settled(parse_deployment(document), catalogue()), known))
