"""The doctor's words: findings about a host, what members need of it, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from backend.domain.checkup import RUNTIMES, Checkup, Reach
from backend.domain.errors import Problem
from backend.domain.host import Host, HostFacts
from backend.domain.rules.words import TOLD
from backend.domain.telling import Said, plainly, said, told
from backend.domain.value import Value

Verdict = Literal["pass", "warn", "fail"]


class Finding(Value):
    """One check's result on one host: `seen` is what was found, `remedy` what to do about it, in
    English; `said` and `advised` are both as data (None from a backend of an earlier version)."""

    check: str
    host: str
    verdict: Verdict
    seen: str
    remedy: str = ""
    values: dict[str, Any] = Field(default_factory=dict)
    said: Said | None = None
    advised: Said | None = None


@dataclass(frozen=True)
class Needs:
    """What members ask of their hosts: programs, folders of models, whether KV traffic needs an
    interface of the host's (`plane` as the mode's `network`), images, and the accelerators that
    they are given (None: any of the host's). Only `runtimes` are asked about themselves and our
    containers: each question takes a program of theirs 0.1 s and more."""

    programs: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = RUNTIMES
    models: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    accelerators: tuple[int, ...] | None = None
    plane: Literal["data", "control", "none"] = "none"


@dataclass(frozen=True)
class Patient:
    """A host and all that is known of it. `problem` is why it did not answer; `instances` are those
    that the store of `owner` knows; `peers` are the other hosts that are looked at with it."""

    host: Host
    port_range: tuple[int, int]
    facts: HostFacts | None = None
    checkup: Checkup | None = None
    problem: Problem | None = None
    owner: str = ""
    instances: frozenset[str] = frozenset()
    needs: Needs = field(default_factory=Needs)
    ifname: str | None = None
    peers: Mapping[str, Checkup] = field(default_factory=dict)
    reaches: tuple[Reach, ...] = ()

    def finding(
        self,
        check: str,
        verdict: Verdict,
        seen: Said | str,
        remedy: Said | str = "",
        **values: Any,
    ) -> Finding:
        """A finding about this host; a text is told as it is."""
        seen = plainly(seen) if isinstance(seen, str) else seen
        remedy = plainly(remedy) if isinstance(remedy, str) else remedy
        return Finding(
            check=check, host=self.host.name, verdict=verdict, values=values,
            seen=told(seen, "en"), remedy=told(remedy, "en"), said=seen, advised=remedy,
        )  # fmt: skip


def failures(findings: Iterable[Finding]) -> tuple[Problem, ...]:
    """What stands in the way of members, as problems."""
    return tuple(
        Problem(
            rule=f"doctor.{f.check}",
            message=f"{f.seen}." if _names_host(f) else f"host {f.host}: {f.seen}.",
            remedy=f.remedy,
            path=f"hosts.{f.host}",
            values={"host": f.host, **f.values, **_told(f)},
        )
        for f in findings
        if f.verdict == "fail"
    )


def _told(f: Finding) -> dict[str, Any]:
    """The problem's words as data (`backend.domain.rules.words.TOLD`)."""
    if f.said is None or f.advised is None:
        return {}
    whole = f.said if _names_host(f) else said("doctor.host", host=f.host, seen=f.said)
    return {TOLD: [one.model_dump(mode="json") for one in (whole, f.advised)]}


def _names_host(f: Finding) -> bool:
    """Whether what was seen begins with the host, as failures of connections do."""
    return f.seen.startswith(f"host {f.host} ") or f.seen.startswith(f"host {f.host}:")
