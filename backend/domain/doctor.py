"""The doctor's words: findings about a host, what members need of it, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from backend.domain.checkup import Checkup, Reach
from backend.domain.errors import Problem
from backend.domain.host import Host, HostFacts
from backend.domain.value import Value

Verdict = Literal["pass", "warn", "fail"]


class Finding(Value):
    """One check's result on one host: `seen` is what was found, `remedy` what to do about it."""

    check: str
    host: str
    verdict: Verdict
    seen: str
    remedy: str = ""
    values: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What members ask of their hosts: programs, folders of models, whether KV traffic needs an
    interface of the host's (`plane` as the mode's `network`), images, and the accelerators that
    they are given (None: any of the host's)."""

    programs: tuple[str, ...] = ()
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
        self, check: str, verdict: Verdict, seen: str, remedy: str = "", **values: Any
    ) -> Finding:
        """A finding about this host."""
        return Finding(
            check=check, host=self.host.name, verdict=verdict, seen=seen, remedy=remedy,
            values=values,
        )  # fmt: skip


def failures(findings: Iterable[Finding]) -> tuple[Problem, ...]:
    """What stands in the way of members, as problems."""
    return tuple(
        Problem(
            rule=f"doctor.{f.check}",
            message=f"host {f.host}: {f.seen}.",
            remedy=f.remedy,
            path=f"hosts.{f.host}",
            values={"host": f.host, **f.values},
        )
        for f in findings
        if f.verdict == "fail"
    )


LISTED = 6


def some(items: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(items) - LISTED} more" if len(items) > LISTED else ""
    return ", ".join(items[:LISTED]) + more
