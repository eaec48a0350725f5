"""What members' figures say of a group's traffic and of the link between its sides. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backend.domain.advice.model import Link, Traffic

Figures = Mapping[str, float]
"""By the names of `backend.domain.figures`: what a member did in the last half minute."""


def traffic(decode: Iterable[Figures]) -> Traffic:
    """Averages over the requests that decode members (or plain replicas) answer now."""
    rows = list(decode)
    rps = sum(f.get("requests", 0.0) for f in rows)
    if rps <= 0:
        return Traffic()
    return Traffic(
        prompt_tokens=sum(f.get("prompt_tokens", 0.0) for f in rows) / rps or None,
        output_tokens=sum(f.get("generation_tokens", 0.0) for f in rows) / rps or None,
        rps=rps,
        source="measured",
    )


def link(members: Iterable[Figures]) -> Link:
    """Bytes a second that transfers reach: the mean size of one over its mean time, of the slowest
    member that exports both."""
    found = []
    for figures in members:
        each, count = figures.get("kv_bytes", 0.0), figures.get("transfers", 0.0)
        seconds = figures.get("kv_seconds", 0.0)
        if each > 0 and count > 0 and seconds > 0:
            found.append(each / count / seconds)
    return Link(min(found), "measured") if found else Link()
