"""Giving up what is on hosts that do not answer: it is killed the moment they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend.domain import acts
from backend.domain.group import Instance
from backend.domain.telling import said
from backend.reconcile.reserving import release
from backend.reconcile.world import World
from backend.store.store import Transaction


def fence(w: World, tx: Transaction, instances: Iterable[Instance], actor: str) -> None:
    """Let go of those of the instances whose hosts do not answer; the others are left alone.

    The janitor ends them once their hosts are back. The caller wakes it when this is stored.
    """
    for i in instances:
        if w.hosts.sight(i.host).up is not False:
            continue
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
