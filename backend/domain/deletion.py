"""What taking one instance out of a group means for it, said before and after. Pure.

Source: PD-FACTS 5.7 and the user's document, "deleting one instance".
"""

from __future__ import annotations

from backend.domain.decide import Picture, roles_of
from backend.domain.group import Instance


def consequences(p: Picture, instance: Instance) -> tuple[str, ...]:
    """Sentences, the gravest first; empty when another member serves on and nothing is lost."""
    if instance.role == "router":
        return _of_router(p)
    out = []
    if p.group.stale:
        out.append(
            f"{instance.id} will not be re-created before the restart: the saved configuration is "
            "not what runs."
        )
    others = [i for i in p.ready(instance.role) if i.id != instance.id]
    if not others and instance.role in roles_of(p.group):
        until = "the restart" if p.group.stale else "a new one is ready"
        out.append(f"No {instance.role} member is left: the group answers nothing until {until}.")
    elif p.membership == "restart" and p.router is not None:
        out.append(
            "The router is replaced for it, and again for the new member: requests in that moment "
            "fail, the members keep running."
        )
    if p.membership == "manual" and p.router is not None:
        out.append(
            f"The router is kept up by hand: tell it to forget {instance.url} now, and of the new "
            "member once it is ready."
        )
    return tuple(out)


def _of_router(p: Picture) -> tuple[str, ...]:
    again = "It is placed and started again with the members that are ready"
    if p.membership == "manual":
        again += "; it is told of them as it starts"
    return (f"The endpoint answers nothing until the new router serves. {again}.",)
