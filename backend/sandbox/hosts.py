"""A set of embedded hosts with one life: started together, and gone without a trace."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncssh

from backend.domain.errors import Conflict, NotFound
from backend.domain.host import Host
from backend.sandbox import plan as plans_module
from backend.sandbox import proc
from backend.sandbox.plan import HostPlan, Subnet
from backend.sandbox.server import EmbeddedHost

_GRACE_S = 1.0


class Sandbox:
    """Embedded hosts under `root`, which it owns: what an earlier run left there is cleaned first.

    Use `start` and `close`, or `async with`. With `adopt`, this process becomes the parent of
    every daemon the hosts start and reaps it: only for a process that does nothing else.
    """

    def __init__(
        self,
        root: Path,
        plans: Sequence[HostPlan],
        run_id: str | None = None,
        *,
        adopt: bool = False,
    ) -> None:
        plans_module.check(plans)
        self.root = root.resolve()
        self.run_id = run_id or uuid.uuid4().hex[:12]
        self.plans = tuple(plans)
        self.known_hosts = self.root / "known_hosts"
        self.client_key = self.root / "client_key"
        self._adopt = adopt
        self._hosts: dict[str, EmbeddedHost] = {}
        self._subnet: Subnet | None = None
        self._record = self.root / "run.json"

    async def __aenter__(self) -> Sandbox:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Clean the root, write keys, start every host.

        Raises Conflict when a living sandbox owns the root, OSError when a port is taken.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(self._clean)
        await asyncio.to_thread(self._write_record)
        if self._adopt:
            proc.become_subreaper()
        key = asyncssh.generate_private_key("ssh-ed25519")
        self.client_key.write_bytes(key.export_private_key())
        self.client_key.chmod(0o600)
        self._subnet = Subnet()
        try:
            for number, plan in enumerate(self.plans, 1):
                host = EmbeddedHost(
                    plan, self.root / "hosts" / plan.name, self._subnet.address(number),
                    self._subnet.ports(number), self.run_id, key.convert_to_public(),
                )  # fmt: skip
                self._hosts[plan.name] = host
                await host.start()
        except BaseException:
            await self.close()
            raise
        self.write_known_hosts()

    def write_known_hosts(self) -> None:
        """Write the file of every host's present key."""
        self.known_hosts.write_text("".join(h.known_hosts_line() for h in self._hosts.values()))

    def inventory(self) -> list[Host]:
        """The hosts as the inventory lists them."""
        return [h.inventory(self.client_key) for h in self._hosts.values()]

    def host(self, name: str) -> EmbeddedHost:
        """One host: its home, faults and engine switches. Raises NotFound."""
        if name not in self._hosts:
            raise NotFound.of("sandbox.host", f"no embedded host is named {name!r}.")
        return self._hosts[name]

    async def leftovers(self) -> list[proc.Process]:
        """The living processes of this run: commands, daemons, engines, routers."""
        return await asyncio.to_thread(proc.belonging, self.run_id, self._homes(), self._roots())

    def reap(self) -> int:
        """Wait for dead processes that fell to us; only with `adopt`."""
        own = {c.pid for h in self._hosts.values() for c in h.commands if c.exit_code is None}
        return proc.reap_adopted(own) if self._adopt else 0

    async def close(self) -> None:
        """Close every port, end every process of the run. Raises Conflict if one will not die."""
        for host in self._hosts.values():
            await host.stop_serving()
        left = await asyncio.to_thread(
            proc.end, self.run_id, self._homes(), self._roots(), _GRACE_S
        )
        for host in self._hosts.values():
            await host.close()
        self.reap()
        if self._subnet:
            self._subnet.release()
            self._subnet = None
        if left:
            names = ", ".join(f"{p.pid} ({p.name})" for p in left)
            raise Conflict.of("sandbox.close", f"processes of the sandbox live on: {names}.")
        await asyncio.to_thread(self._write_record, True)

    def _homes(self) -> list[Path]:
        return [self.root / "hosts" / p.name for p in self.plans]

    def _roots(self) -> list[int]:
        return [os.getpid()] if self._adopt else []

    def _write_record(self, closed: bool = False) -> None:
        me = proc.look(os.getpid())
        record: dict[str, Any] = {
            "run_id": self.run_id, "pid": os.getpid(), "start": me.start if me else 0,
            "boot": proc.boot_id(), "closed": closed,
        }  # fmt: skip
        self._record.write_text(json.dumps(record))

    def _clean(self) -> None:
        """End what an earlier run left under this root, and remove its homes."""
        homes = self.root / "hosts"
        try:
            record = json.loads(self._record.read_text())
            run_id, pid, start = str(record["run_id"]), int(record["pid"]), int(record["start"])
        except FileNotFoundError:
            if homes.exists():
                raise Conflict.of(
                    "sandbox.root", f"{homes} was not made by a sandbox.",
                    remedy="Name an empty directory.",
                ) from None  # fmt: skip
            return
        except (ValueError, KeyError, TypeError) as e:
            raise Conflict.of("sandbox.root", f"{self._record} is unreadable: {e}.") from e
        if record.get("boot") == proc.boot_id() and not record.get("closed"):
            owner = proc.look(pid)
            if owner and owner.start == start and owner.lives:
                raise Conflict.of(
                    "sandbox.root", f"{self.root} is in use by the sandbox with pid {pid}.",
                    remedy="Stop it, or name another directory.", values={"pid": pid},
                )  # fmt: skip
            proc.end(run_id, [h for h in homes.glob("*") if h.is_dir()])
        shutil.rmtree(homes, ignore_errors=True)
