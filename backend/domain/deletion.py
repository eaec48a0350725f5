"""What taking one instance out of a group means for it, said before and after. Pure.

Source: PD-FACTS 5.7 and the user's document, "deleting one instance".
"""

from __future__ import annotations

from backend.domain.decide import Picture, roles_of
from backend.domain.group import Instance
from backend.domain.telling import Said, said


def consequences(
    p: Picture, instance: Instance, silent: bool = False, force: bool = False
) -> tuple[Said, ...]:
    """Sentences, the gravest first; empty when another member serves on and nothing is lost.

    `silent`: its host does not answer; `force`: that is not waited for.
    """
    out = []
    if silent:
        way = "out.forced" if force else "out.silent"
        out.append(said(way, instance=instance.id, host=instance.host))
    if instance.role == "router":
        by_hand = p.membership == "manual"
        return (*out, said("out.router_by_hand" if by_hand else "out.router"))
    if p.group.stale:
        out.append(said("out.stale", instance=instance.id))
    others = [i for i in p.ready(instance.role) if i.id != instance.id]
    if not others and instance.role in roles_of(p.group):
        out.append(said("out.last_stale" if p.group.stale else "out.last", role=instance.role))
    elif p.membership == "restart" and p.router is not None:
        out.append(said("out.replaced"))
    if p.membership == "manual" and p.router is not None:
        out.append(said("out.by_hand", url=instance.url))
    return tuple(out)
