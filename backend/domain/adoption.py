"""Groups rebuilt from what their instances' directories keep, after their store was lost. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from backend.domain.decide import roles_of
from backend.domain.desired import with_counts
from backend.domain.group import Group, Instance
from backend.domain.instance import ProcessStatus


@dataclass(frozen=True)
class Left:
    """One instance directory that no row of ours stands for. `row` and `launch` are what it keeps;
    both are empty for one that was claimed and never started."""

    host: str
    instance: str
    owner: str
    row: Mapping[str, Any] = field(default_factory=dict)
    launch: Mapping[str, Any] = field(default_factory=dict)
    process: ProcessStatus | None = None


@dataclass(frozen=True)
class Adopted:
    """A group to store with its instances, and directories that have no place in it."""

    group: Group
    instances: tuple[Instance, ...]
    rest: tuple[Left, ...] = ()


def keepsake(group: Group, instance: Instance) -> str:
    """What a directory keeps of its row and its group, in one line; the launch lies beside it."""
    about = {"restart": None, "endpoint": None, "placement_note": ""}
    kept = group.model_copy(update=about).model_dump(mode="json")
    row = instance.model_dump(mode="json", exclude={"launch", "process"})
    return json.dumps({"group": kept, "instance": row}, ensure_ascii=True)


def group_of(left: Left) -> str:
    """The group that a directory belongs to, empty when it does not say."""
    row = left.row.get("instance")
    return str(row.get("group", "")) if isinstance(row, Mapping) else ""


def rebuild(found: Iterable[Left], now: float) -> tuple[list[Adopted], list[Left]]:
    """Every group that the directories tell of, and the directories that tell of none.

    The newest group row wins. Members of another revision than it was formed with have no place in
    it; the counts are those that were found, since a later scale-down left no word behind.
    """
    read: dict[str, list[tuple[Left, Group, Instance]]] = {}
    lost = []
    for left in found:
        try:
            group = Group.model_validate(left.row["group"])
            row = Instance.model_validate({**left.row["instance"], "launch": dict(left.launch)})
        except (ValidationError, KeyError, TypeError):
            lost.append(left)
            continue
        read.setdefault(group.name, []).append((left, group, row))
    return [_group(rows, now) for _, rows in sorted(read.items())], lost


def _group(rows: Sequence[tuple[Left, Group, Instance]], now: float) -> Adopted:
    _, newest, _ = max(rows, key=lambda r: (r[1].version, r[2].since))
    revision = newest.formed.revision if newest.formed is not None else ""
    kept, rest, router = [], [], False
    for left, _, row in sorted(rows, key=lambda r: r[2].since, reverse=True):
        second = row.role == "router" and router
        if row.revision != revision or second:
            rest.append(left)
            continue
        router = router or row.role == "router"
        kept.append(_row(left, row, now))
    counts = {r: sum(1 for i in kept if i.role == r) for r in roles_of(newest)}
    document = with_counts(newest.document, {r: n for r, n in counts.items() if n})
    update = {"document": document, "deleting": False, "applied": counts}
    return Adopted(newest.model_copy(update=update), tuple(kept), tuple(rest))


def _row(left: Left, row: Instance, now: float) -> Instance:
    """A row as right after its start: what is seen of the process decides the rest."""
    generation = left.process.generation if left.process is not None else row.generation
    update = {
        "state": "starting", "host": left.host, "process": left.process, "since": now,
        "generation": generation, "removing": False, "draining_since": None, "next_start": None,
        "note": "",
    }  # fmt: skip
    return row.model_copy(update=update)
