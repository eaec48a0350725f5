"""What the catalogue says of metrics: one name for each thing that engines and routers count."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from backend.domain.value import Value

Kind = Literal["counter", "gauge", "histogram"]


class _Data(Value):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class SeriesSource(_Data):
    """One name on a metrics page, without `_total`: releases differ in it.

    Only samples that carry `labels` count, times `scale`. `by` keeps a label's values apart.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z_:][A-Za-z0-9_:]*$")]
    labels: dict[str, str] = Field(default_factory=dict)
    scale: Annotated[float, Field(gt=0)] = 1.0
    by: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _bare(self) -> SeriesSource:
        if self.name.endswith("_total"):
            raise ValueError(f"write {self.name} without _total: both spellings are read")
        return self


class SeriesRecipe(_Data):
    """One thing that is counted, and every name it goes by: the first that a page has counts, or
    (`together`) all of them added up.

    Samples of one page that differ in other labels (a rank, an engine of several) are summed, or
    the largest is taken. A histogram's `buckets` are kept where a quantile is asked of it.
    """

    kind: Kind
    unit: str = ""
    fold: Literal["sum", "max"] = "sum"
    buckets: bool = False
    together: bool = False
    sources: tuple[SeriesSource, ...]


class MetricsRecipe(_Data):
    """What shows, in one mode, that KV moves: series by the catalogue's names.

    `counted_role` counts `transfers`; null where its connector counts none. `per_request` is false
    where something else is counted too (SGLang counts its health probes), so that no share can be
    taken of them. `failures` and `expired` mean trouble whenever they grow.
    """

    counted_role: Literal["prefill", "decode"]
    transfers: str | None = None
    per_request: bool = True
    failures: tuple[str, ...] = ()
    expired: str | None = None


class CanaryQuery(_Data):
    """What is asked of a prefill before a pair is tried: a path of one of its bands, and where in
    the answer its engine id stands (`*` is any key)."""

    band: str
    path: str
    engine_id: tuple[str, ...]


class CanaryRecipe(_Data):
    """How a mode's router makes one request reach a prefill and a decode, so that it can be done
    without it. `prefill` and `decode` are merged into the request's body.

    `together`: both are sent at once, as they wait for each other; else decode is sent what prefill
    answered.
    """

    together: bool = False
    query: CanaryQuery | None = None
    prefill: dict[str, Any] = Field(default_factory=dict)
    decode: dict[str, Any] = Field(default_factory=dict)
