"""Giving up what is on hosts that do not answer: it is killed the moment they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from backend.domain import acts
from backend.domain.group import Instance
from backend.domain.telling import said
from backend.reconcile.living import may_still_send
from backend.reconcile.reserving import release
from backend.reconcile.world import World
from backend.store.store import Transaction


def fence(w: World, tx: Transaction, instances: Iterable[Instance], actor: str) -> None:
    """Let go of those of the instances whose hosts do not answer; the others are left alone.

    The janitor ends them once their hosts are back. The caller wakes it when this is stored.
    """
    gone = [i for i in instances if w.hosts.sight(i.host).up is False]
    for i in gone:
        body: dict[str, Any] = {"host": i.host, "instance": i.id}
        if i.role == "router":  # it may live and send to where its members are or were
            body["haunted"] = [*i.haunted, *acts.haunts(w.store.of_group(i.group))]
        release(tx, i.group, [body])
        tx.drop_instance(i)
        tx.tell(
            "fenced",
            i,
            said("fenced", instance=i.id, host=i.host),
            actor=actor,
            level="warning",
        )
    for router in _left(w, gone):
        tx.put_instance(router)


def _left(w: World, gone: Sequence[Instance]) -> Iterator[Instance]:
    """The routers that stay, with the members among `gone` that they may still send to."""
    for name in {i.group for i in gone}:
        router = next((i for i in w.store.of_group(name) if i.role == "router"), None)
        if router is None or router in gone:
            continue
        before = router
        for member in (i for i in gone if i.group == name):
            router = acts.bereaved(router, member, may_still_send(w, router, member)) or router
        if router is not before:
            yield router
