"""A group and its hosts as shown, made from what is stored and seen. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from backend.domain import status
from backend.domain.decide import Picture
from backend.domain.group import Instance
from backend.domain.host import HostFacts
from backend.domain.precondition import etag
from backend.domain.shell import join
from backend.domain.views import (
    AcceleratorView,
    EndpointView,
    GroupView,
    MemberView,
)
from backend.domain.worker_calls import served_name


def group_view(p: Picture, changes: Sequence[str] = (), policies: str = "") -> GroupView:
    """The group as the list and the panel show it."""
    g = p.group
    spec = g.document.spec
    wanted, currently = status.ratio(p)
    return GroupView(
        name=g.name,
        mode=spec.disaggregation.mode if spec.disaggregation else None,
        engine=spec.engine,
        model=spec.model,
        labels=g.document.metadata.labels,
        version=g.version,
        etag=etag(g.document, g.version),
        revision=g.revision,
        status=status.status(p),
        ratio=wanted,
        currently=currently,
        config_changed=g.stale,
        changes=tuple(changes),
        phase=status.phase(g, p.instances),
        deleting=g.deleting,
        paused=spec.paused,
        membership=p.membership,
        roles=status.counts(p),
        members=tuple(member_view(p, i) for i in p.instances),
        marks=status.marks(p),
        endpoint=_endpoint(p),
        policies=policies,
        since=g.since,
    )


def member_view(p: Picture, i: Instance) -> MemberView:
    """One instance as shown."""
    formed = p.group.formed
    return MemberView(
        id=i.id,
        role=i.role,
        host=i.host,
        state=i.state,
        generation=i.generation,
        revision=i.revision,
        stale=formed is not None and i.revision != p.group.revision,
        accelerators=i.accelerators,
        accelerator_type=i.accelerator_type,
        address=i.address,
        net_device=i.net_device,
        port=i.port,
        bands=tuple(b for b in i.bands if b.name != "http"),
        pid=i.process.pid if i.process and i.process.state == "running" else 0,
        since=i.since,
        next_start=i.next_start if i.state == "exited" else None,
        failures=i.failures,
        in_router=_in_router(p, i),
        note=i.note,
    )


def _in_router(p: Picture, i: Instance) -> bool | None:
    """Whether the router knows this start of the member; None where nobody can say."""
    router = p.router
    if i.role == "router" or router is None or router.state != "ready":
        return None
    if p.membership == "dynamic":
        peers, current = p.registry.peers, p.registry.generation == router.generation
        return i.url in peers if peers is not None and current else None
    if p.membership == "restart":
        return i.record() in (router.snapshot or ())
    return None


def _endpoint(p: Picture) -> EndpointView | None:
    url = ""
    if p.membership == "none":
        ready = [i for i in p.members if i.state == "ready" and not i.leaving]
        url = ready[0].url if ready else ""
    elif p.group.endpoint is not None:
        url = p.group.endpoint.url
    if not url:
        return None
    document = p.group.formed.document if p.group.formed else p.group.document
    model = served_name(document)
    body = {"model": model, "messages": [{"role": "user", "content": "Say hello."}]}
    said = json.dumps(body, ensure_ascii=False)
    argv = (f"{url}/v1/chat/completions", "-H", "Content-Type: application/json", "-d", said)
    curl = f"curl {join(argv)}"
    return EndpointView(url=f"{url}/v1", model=model, curl=curl)


def accelerator_views(
    facts: HostFacts | None, holders: Mapping[int, str]
) -> tuple[AcceleratorView, ...]:
    """A host's accelerators and who holds each."""
    if facts is None:
        return ()
    return tuple(
        AcceleratorView(
            index=a.index, type=a.type, memory_mib=a.memory_mib, held_by=holders.get(a.index, "")
        )
        for a in facts.accelerators
    )


MIG_ON = "MIG (it is cut into slices)"


def strangers(facts: HostFacts) -> dict[int, str]:
    """Accelerators that somebody uses who claimed nothing, and who that is: any process that
    computes there. A member's own processes are covered by its claim, which overrides this."""
    held: dict[int, str] = {a.index: MIG_ON for a in facts.accelerators if a.mig}
    for use in facts.uses:
        others = sum(1 for u in facts.uses if u.index == use.index) - 1
        more = f" and {others} more" if others else ""
        held.setdefault(use.index, f"{use.text()}{more}")
    return held
