"""Advice on a deployment, from what its hosts, its model and its members tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from backend.domain.advice import measured
from backend.domain.advice.estimate import Rates, estimated
from backend.domain.advice.judge import Case, advise
from backend.domain.advice.kv import KvSize, Untold, kv_size
from backend.domain.advice.model import Advice, Link, Size, Source, Traffic
from backend.domain.deployment import Deployment
from backend.domain.instance import MEMBER_ROLES
from backend.domain.rules.sides import Side
from backend.domain.rules.subject import Subject
from backend.domain.views import GroupView, MemberView
from backend.domain.words import Words, both
from backend.reconcile.world import World
from backend.services.checking import Checking

NOT_KNOWN = both("the model's configuration is not known", "模型的配置未知")


@dataclass(frozen=True)
class Given:
    """What a person says, which holds before anything measured. Units as in `AdviceBody`."""

    prompt_tokens: float | None = None
    output_tokens: float | None = None
    rps: float | None = None
    link_gbit: float | None = None
    prefill_rate: float | None = None
    decode_rate: float | None = None
    config: Mapping[str, Any] | None = None
    accelerator: str | None = None


async def advice_on(
    world: World, document: Deployment, view: GroupView | None, given: Given
) -> Advice:
    """Advice on a document; `view` is its group where it is one that runs."""
    known = await Checking(world, world.models).known(document)
    sides = Subject(document, known).sides
    prefill, decode = sides[0], sides[-1]
    config = given.config or prefill.config
    kv = _kv(config, decode)
    members = view.members if view else ()
    traffic = _traffic(members, given)
    rates, source = _rates(world, config, kv, traffic, (prefill, decode), members, given)
    return advise(
        Case(
            deployment=document.name,
            prefill=_size(prefill),
            decode=_size(decode),
            kv=kv,
            traffic=traffic,
            link=_link(world, members, given),
            rates=rates,
            rates_source=source,
        )
    )


def _kv(config: Mapping[str, Any] | None, side: Side) -> KvSize | Words:
    if config is None:
        return NOT_KNOWN
    kv_dtype, dtype = (side.written(f) for f in ("kv_cache_dtype", "dtype"))
    try:
        return kv_size(
            config,
            kv_dtype=(kv_dtype and kv_dtype.value) or "auto",
            dtype=(dtype and dtype.value) or "auto",
            tensor=side.degree("tensor") or 1,
        )
    except Untold as why:
        return why.words


def _size(side: Side) -> Size:
    return Size(
        members=max(side.role.replicas, 1),
        accelerators=max(side.role.width, 1),
        tensor=side.degree("tensor") or 1,
        parameters=tuple(side.role.parameters),
    )


def _traffic(members: Iterable[MemberView], given: Given) -> Traffic:
    """As given, else as measured now."""
    seen = measured.traffic(m.figures for m in members if m.role in ("decode", "replica"))
    said = (given.prompt_tokens, given.output_tokens, given.rps)
    return Traffic(
        prompt_tokens=given.prompt_tokens or seen.prompt_tokens,
        output_tokens=given.output_tokens or seen.output_tokens,
        rps=given.rps or seen.rps,
        source="given" if any(s is not None for s in said) else seen.source,
    )


def _link(world: World, members: Iterable[MemberView], given: Given) -> Link:
    """As given, else what transfers were measured to reach, else the slowest interface."""
    if given.link_gbit is not None:
        return Link(given.link_gbit * 1e9 / 8, "given")
    engines = [m for m in members if m.role in MEMBER_ROLES]
    seen = measured.link(m.figures for m in engines)
    if seen.bytes_per_s is not None:
        return seen
    if len({m.host for m in engines}) < 2:
        return Link()  # on one host KV does not pass an interface
    speeds = [_speed(world, m) for m in engines]
    known = [s for s in speeds if s]
    return Link(min(known) * 1e6 / 8, "measured") if len(known) == len(engines) else Link()


def _speed(world: World, member: MemberView) -> int | None:
    """Mbit/s of the interface that a member's KV goes over."""
    facts = world.hosts.sight(member.host).facts
    if facts is None:
        return None
    device = member.net_device or next(
        (i.name for i in facts.interfaces if member.address in i.addresses), ""
    )
    return facts.speeds.get(device)


def _rates(
    world: World,
    config: Mapping[str, Any] | None,
    kv: KvSize | Words,
    traffic: Traffic,
    sides: tuple[Side, Side],
    members: Iterable[MemberView],
    given: Given,
) -> tuple[Rates, Source]:
    if given.prefill_rate is not None and given.decode_rate is not None:
        return Rates(given.prefill_rate, given.decode_rate), "given"
    card = given.accelerator or next(
        (m.accelerator_type for m in members if m.accelerator_type), ""
    )
    if not card:
        card = _card(world, sides[0])
    if config is None or isinstance(kv, Words) or not card:
        return Rates(given.prefill_rate, given.decode_rate), "given" if given.prefill_rate else ""
    context = (traffic.prompt_tokens or 0) + (traffic.output_tokens or 0)
    prefill, decode = (
        estimated(
            config,
            card,
            ranks=max(s.role.width, 1),
            kv_bytes=kv.of(context) * kv.copies,
        )
        for s in sides
    )
    rates = Rates(given.prefill_rate or prefill.prefill, given.decode_rate or decode.decode)
    return rates, "estimated"


def _card(world: World, side: Side) -> str:
    """The type of the cards on the hosts that the role may run on, where there is one."""
    seen = (world.hosts.sight(h).facts for h in side.known.eligible(side.role))
    types = {a.type for facts in seen if facts for a in facts.accelerators}
    return types.pop() if len(types) == 1 else ""
