"""Instances in memory, found by group and by host without a look at all the others."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from backend.domain.group import Instance


class Instances(dict[str, Instance]):
    """All instances by id. An instance never moves to another group or host."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: defaultdict[str, dict[str, Instance]] = defaultdict(dict)
        self._hosts: defaultdict[str, dict[str, Instance]] = defaultdict(dict)

    def __setitem__(self, key: str, row: Instance) -> None:
        """Add or replace one."""
        old = self.get(key)
        if old is not None and (old.group, old.host) != (row.group, row.host):
            self.pop(key)
        super().__setitem__(key, row)
        self._groups[row.group][key] = row
        self._hosts[row.host][key] = row

    def pop(self, key: str, *default: Any) -> Any:
        """Take one out."""
        old = super().pop(key, *default)
        if isinstance(old, Instance):
            for table, name in ((self._groups, old.group), (self._hosts, old.host)):
                table[name].pop(key, None)
                if not table[name]:
                    del table[name]
        return old

    def of_group(self, name: str) -> list[Instance]:
        """Those of a group, by role and id."""
        return sorted(self._groups.get(name, {}).values(), key=lambda i: (i.role, i.id))

    def on_host(self, name: str) -> list[Instance]:
        """Those on a host."""
        return list(self._hosts.get(name, {}).values())
