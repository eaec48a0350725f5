"""What travels in request and error bodies; views travel as `backend.domain.views` has them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from backend.domain.errors import Problem
from backend.domain.views import AdoptableView

API_VERSION = "v1"


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScaleBody(_Body):
    """Wanted members by role."""

    counts: Annotated[dict[str, int], Field(examples=[{"prefill": 3}])]


class RestartBody(_Body):
    """`force` does not wait for hosts that do not answer."""

    force: bool = False


class RollbackBody(_Body):
    """The version whose document is saved again."""

    version: Annotated[int, Field(ge=1)]


class PauseBody(_Body):
    """Whether the group is switched off; `force` does not wait for hosts that do not answer."""

    paused: bool
    force: bool = False


class KeyBody(_Body):
    """The fingerprint a person was shown and accepts, `SHA256:...`."""

    fingerprint: str


class HandoverBody(_Body):
    """The version that takes over."""

    version: Annotated[str, Field(max_length=64)]


class AdviceBody(_Body):
    """What advice is asked for: a stored deployment by `name`, or a `document`; and what is known
    better than it can be measured. Rates are tokens a second of one member; `config` is the
    model's `config.json` where no host has it; `accelerator` the cards' type name."""

    name: str | None = None
    document: dict[str, Any] | None = None
    prompt_tokens: Annotated[float | None, Field(gt=0)] = None
    output_tokens: Annotated[float | None, Field(gt=0)] = None
    rps: Annotated[float | None, Field(gt=0)] = None
    link_gbit: Annotated[float | None, Field(gt=0)] = None
    prefill_rate: Annotated[float | None, Field(gt=0)] = None
    decode_rate: Annotated[float | None, Field(gt=0)] = None
    config: dict[str, Any] | None = None
    accelerator: str | None = None


class AdoptBody(_Body):
    """Whose instances to take over."""

    owner: str


class AdoptableBody(BaseModel):
    """What could be adopted; `unasked` are hosts that could not be asked, with why."""

    found: list[AdoptableView]
    unasked: dict[str, str] = {}


class ErrorBody(BaseModel):
    """Every error, as RFC 9457 has it; beside that its kind, and one problem or more with rule,
    path, message, values and remedy."""

    type: Annotated[str, Field(examples=["urn:pdtui:problem:group.unknown"])]
    title: str
    status: int
    detail: str
    instance: str = ""
    kind: str
    problems: list[Problem]


class CheckBody(BaseModel):
    """Findings about a document, worst first."""

    verdicts: list[Problem]
    skipped: list[str] = []


Document = dict[str, Any]
