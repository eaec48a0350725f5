"""The shipped modes as the backend's API shows them, and its rules, without a backend."""

from __future__ import annotations

from functools import cache
from typing import Any

from backend.adapters.recipes import builtin_path, load_catalogue
from backend.domain.catalogue import Catalogue
from backend.domain.documents import parse_deployment
from backend.domain.errors import Problem
from backend.domain.example import launches
from backend.domain.picker import choices
from backend.domain.rules.known import Known
from backend.domain.rules.routing import settled
from backend.domain.rules.table import judge
from backend.domain.views import ModeChoice, ModeView, RenderedView
from backend.services.pictures import mode_view
from backend.services.rendering import views


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


def rendered(document: dict[str, Any]) -> tuple[RenderedView, ...]:
    """What `POST /v1/render` answers where no host is known."""
    parsed = settled(parse_deployment(document), catalogue())
    return views(launches(catalogue(), parsed, (), {}))


def fitting(engine: str = "vllm") -> tuple[ModeChoice, ...]:
    """What `GET /v1/mode-choices` answers where every host is NVIDIA's."""
    return tuple(
        ModeChoice(mode=c.mode, title=c.mode, why_not=c.why_not, recommended=c.recommended)
        for c in choices(catalogue(), engine, {"nvidia"})
    )
