"""The process runtime: instances as supervised processes in directories of their own, over SSH.

Every operation is one round trip (a stop: a few short ones) and safe to repeat.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from backend.adapters.secrets import resolved
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import Conflict, NotFound, RemoteFailed
from backend.domain.host import Claim, Host
from backend.domain.instance import LaunchSpec, ProcessStatus
from backend.domain.views import LogChunk
from backend.steps import claiming, ending, launching, logs, strays
from backend.steps import status as seen
from backend.steps.claiming import ClaimOrder
from backend.steps.common import instance_id, owner_id

__all__ = ["ClaimOrder", "ProcessRuntime", "StopResult"]

_A = TypeVar("_A")
_R = TypeVar("_R")

LOG_LIMIT = 64 << 20
"""Bytes a log may grow to before it is rotated; one rotated piece is kept."""
ORPHANS_S = 4.0
"""How long a stop leaves an ended leader's children to its supervisor, which takes 2 s itself."""
KILL_WAIT_S = 10.0
"""How long a stop waits for killed processes to go."""


@dataclass(frozen=True)
class StopResult:
    """How a stop ended. `gone` only when no process of the instance lives.

    `killed` when SIGKILL was needed, `survivors` counts what still lives and `pids` names it.
    """

    gone: bool
    killed: bool = False
    exit_code: int | None = None
    survivors: int = 0
    seconds: float = 0.0
    pids: tuple[int, ...] = ()


class ProcessRuntime:
    """Starts, watches and ends instances on `process` hosts, on behalf of one owner.

    `owner` is the id of the backend's store; instances of other owners are shown but never touched.
    """

    def __init__(
        self,
        pool: SshPool,
        owner: str,
        *,
        log_limit: int = LOG_LIMIT,
        rotate_every_s: float = 5.0,
    ) -> None:
        self._pool = pool
        self.owner = owner_id(owner)
        self._log_limit = log_limit
        self._rotate_every_s = rotate_every_s

    async def claim(self, host: Host, orders: Sequence[ClaimOrder]) -> None:
        """Claim accelerators and ports for all the orders, or for none.

        A claim that the same owner's instance holds is replaced. Raises Conflict listing everything
        that is not free and who holds it; HostError kinds.
        """
        if not orders:
            return
        clashes: list[claiming.Clash] | None = claiming.own_clashes(orders)
        if not clashes:
            args = [host.work_dir, self.owner, claiming.encode(orders)]
            out = await self._pool.run(host, claiming.CLAIM, args=args, timeout=20.0)
            clashes = _readable(host, claiming.parse, out.stdout)
        if clashes is None:
            raise _busy(host, "its claims are")
        if clashes:
            raise Conflict.of(
                "host.claimed",
                f"host {host.name}: " + "; ".join(c.text() for c in clashes) + ".",
                remedy="Choose other accelerators or ports, or end what holds them.",
                values={
                    "host": host.name,
                    "clashes": [
                        {"kind": c.kind, "value": c.value, "instance": c.instance, "owner": c.owner}
                        for c in clashes
                    ],
                },
            )

    async def start(
        self,
        host: Host,
        instance: str,
        generation: int,
        spec: LaunchSpec,
        labels: Mapping[str, str],
        *,
        row: str = "",
        timeout: float = 30.0,
        recorded: LaunchSpec | None = None,
    ) -> ProcessStatus:
        """Start that generation of a claimed instance; one already started is found, not repeated.
        `row` is one line of JSON that `adoptable` hands back, `recorded` the launch, if another.

        Raises Conflict while an earlier generation lives, when a later one was started, when a port
        is listened on, or when the claim is missing or another owner's; Refused when a value that
        its environment refers to cannot be had; HostError kinds.
        """
        args = launching.start_args(
            host.work_dir, self.owner, instance, generation, spec, labels,
            run_id=str(uuid.uuid4()), log_limit=self._log_limit,
            rotate_every_s=self._rotate_every_s, row=row, recorded=recorded,
            env=await resolved(spec.env, instance),
        )  # fmt: skip
        out = await self._pool.run(host, launching.START, args=args, timeout=timeout)
        lines = out.stdout.split("\n")
        if lines[0] in ("STARTED", "FOUND"):
            return seen.status(seen.parse(out.stdout), instance)
        raise _start_refused(host, instance, generation, lines)

    async def stop(self, host: Host, instance: str, grace_s: float) -> StopResult:
        """End every process of the instance: SIGTERM to its leader, SIGKILL to all after `grace_s`.

        Returns also when something survives: look at `gone`. Raises Conflict for another owner's
        instance; HostError kinds, after which it may be called again.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        state = await self._stop_step(host, instance, "TERM", min(1.0, grace_s))
        killed, orphaned, kill_until = False, None, None
        while not state.gone:
            now = loop.time()
            if not state.leader and orphaned is None:
                orphaned = now
            overdue = now - began >= grace_s
            waited = orphaned is not None and now - orphaned >= min(ORPHANS_S, grace_s)
            if kill_until is not None and now >= kill_until:
                break
            if overdue or waited:
                kill_until = kill_until or now + KILL_WAIT_S
                killed = killed or bool(state.left)
                state = await self._stop_step(host, instance, "KILL", 1.0)
            else:
                left = max(0.1, min(1.0, began + grace_s - now))
                state = await self._stop_step(host, instance, "NONE", left)
        return StopResult(
            gone=state.gone,
            killed=killed,
            exit_code=state.exit_code,
            survivors=len(state.left),
            seconds=loop.time() - began,
            pids=state.left,
        )

    async def _stop_step(
        self, host: Host, instance: str, signal: str, wait: float
    ) -> ending.Ending:
        """One short session, so that a long grace never holds one of the host's eight."""
        tenths = str(max(0, round(wait * 10)))
        args = [host.work_dir, instance_id(instance), self.owner, signal, tenths]
        out = await self._pool.run(host, ending.STOP, args=args, timeout=30.0)
        self._not_foreign(host, instance, out.stdout)
        return _readable(host, ending.parse, out.stdout)

    async def end_strays(self, host: Host, instance: str, last: ProcessStatus | None) -> None:
        """Kill what is left of an instance whose directory is gone: `last` is its leader as seen.

        Raises RemoteFailed while something of it lives on; HostError kinds.
        """
        pid, ticks = (last.pid, last.start_ticks) if last is not None else (0, 0)
        args = [instance_id(instance), str(pid), str(ticks)]
        out = await self._pool.run(host, strays.END_STRAYS, args=args)
        alive = _readable(host, strays.left, out.stdout)
        if alive:
            raise RemoteFailed.of(
                "life.still_alive",
                f"{instance} has no directory on {host.name} any more, and its processes "
                f"{', '.join(map(str, alive))} cannot be ended.",
                remedy="Look at them on the host: they may be another user's.",
                values={"host": host.name, "instance": instance, "pids": alive},
            )

    async def remove(self, host: Host, instance: str) -> None:
        """Delete the instance's directory and free its claim; nothing to do when there is none.

        Raises Conflict while a process of it lives or when it is another owner's; HostError kinds.
        """
        args = [host.work_dir, instance_id(instance), self.owner]
        out = await self._pool.run(host, ending.REMOVE, args=args)
        self._not_foreign(host, instance, out.stdout)
        alive = _line(out.stdout, "ALIVE")
        if alive is not None:
            pids = alive.split()[1:]
            raise Conflict.of(
                "life.still_alive",
                f"{instance} still has living processes on {host.name}: {', '.join(pids)}.",
                remedy="Stop it first.",
                values={"host": host.name, "instance": instance, "pids": [int(p) for p in pids]},
            )

    async def statuses(self, host: Host, *, owner: str | None = None) -> list[ProcessStatus]:
        """Every instance directory of that owner (of any owner: None), in one round trip."""
        picture = await self._picture(host)
        found = seen.statuses(picture)
        return found if owner is None else [s for s in found if s.owner == owner]

    async def status(self, host: Host, instance: str) -> ProcessStatus:
        """One instance; `absent` when there is no directory of it."""
        return seen.status(await self._picture(host, instance_id(instance)), instance)

    async def claims(self, host: Host) -> list[Claim]:
        """Every claim on the host, of any owner."""
        return seen.claims(await self._picture(host))

    async def _picture(self, host: Host, instance: str | None = None) -> seen.Picture:
        args = [host.work_dir] if instance is None else [host.work_dir, instance]
        out = await self._pool.run(host, seen.STATUSES, args=args)
        return seen.parse(out.stdout)

    async def adoptable(self, host: Host) -> list[dict[str, Any]]:
        """What each started instance's directory says of it: labels, owner, instance, generation,
        `launch`, whose env is whole again, and `row`. Directories that cannot be read are left out.
        """
        out = await self._pool.run(host, logs.SPECS, args=[host.work_dir])
        specs: dict[str, dict[str, Any]] = {}
        for line in out.stdout.split("\n"):
            path, _, text = line.partition(":")
            name, _, file = path.partition("/")
            try:
                body = json.loads(text) if text else None
            except ValueError:
                continue
            if isinstance(body, dict):
                specs.setdefault(name, {})[file] = body
        found = []
        for _, files in sorted(specs.items()):
            body = files.get("spec.json")
            if body and isinstance(body.get("launch"), dict):
                body["launch"]["env"] = files.get("env.json", body["launch"].get("env", {}))
                body["row"] = files.get("row.json", {})
                found.append(body)
        return found

    async def adopt(self, host: Host, instance: str, owner: str) -> None:
        """Make another owner's instance our own; nothing to do when it is already.

        Raises Conflict when it belongs to a third one, NotFound when it is gone, HostError kinds.
        """
        args = [host.work_dir, instance_id(instance), owner_id(owner), self.owner]
        out = await self._pool.run(host, claiming.ADOPT, args=args)
        self._not_foreign(host, instance, out.stdout)
        if "ABSENT" in out.stdout.split("\n"):
            raise NotFound.of("host.absent", f"{instance} is not on {host.name} any more.",
                              values={"host": host.name, "instance": instance})  # fmt: skip

    async def log(
        self,
        host: Host,
        instance: str,
        *,
        generation: int | None = None,
        offset: int | None = None,
        tail_bytes: int = 65536,
        limit: int = 1 << 20,
    ) -> LogChunk:
        """A piece of the log: from `offset` on, or the last `tail_bytes`; at most `limit` bytes.

        Follow by calling again with the answer's `offset`, which rotation does not disturb.
        `truncated` says that bytes before the piece were passed over. Raises NotFound, HostError.
        """
        args = [
            host.work_dir, instance_id(instance), "" if generation is None else str(generation),
            "" if offset is None else str(offset), str(tail_bytes), str(limit),
        ]  # fmt: skip
        piece = await self._piece(host, args)
        if piece is None:
            raise NotFound.of(
                "log.absent",
                f"{instance} has no log on {host.name}"
                + ("." if generation is None else f" of generation {generation}."),
                values={"host": host.name, "instance": instance},
            )
        return LogChunk(
            instance=instance,
            generation=piece.generation,
            text=piece.text,
            offset=piece.after,
            truncated=piece.truncated,
        )

    async def _piece(self, host: Host, args: list[str]) -> logs.Piece | None:
        """Read again while a rotation comes between, but not for ever."""
        tries = 3
        while True:
            raw = await self._pool.run_raw(host, logs.LOG, args=args)
            tries -= 1
            try:
                return _readable(host, logs.parse, raw.stdout)
            except logs.Disturbed as disturbed:
                if tries == 0:
                    return disturbed.piece

    async def ports_free(self, host: Host, ports: Sequence[int]) -> list[int]:
        """Those of the ports that something on the host still listens on."""
        script = f"cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '{claiming.LISTENERS_AWK}'"
        out = await self._pool.run(host, script)
        listening = {int(w[1], 16) for line in out.stdout.splitlines() if (w := line.split())}
        return [p for p in ports if p in listening]

    def _not_foreign(self, host: Host, instance: str, text: str) -> None:
        if "BUSY" in text.split("\n"):
            raise _busy(host, f"{instance} is")
        other = _line(text, "FOREIGN")
        if other is not None:
            raise _foreign(host, instance, other)


def _line(text: str, word: str) -> str | None:
    """The rest of the line that begins with `word`."""
    for line in text.split("\n"):
        if line == word or line.startswith(word + " "):
            return line[len(word) + 1 :]
    return None


def _readable(host: Host, parse: Callable[[_A], _R], answer: _A) -> _R:
    """The parsed answer. Raises RemoteFailed for one that is none."""
    try:
        return parse(answer)
    except ValueError as exc:
        raise RemoteFailed.of(
            "host.answer", f"host {host.name}: {exc}.", values={"host": host.name}
        ) from exc


def _busy(host: Host, what: str) -> Conflict:
    return Conflict.of(
        "host.locked",
        f"host {host.name}: {what} being changed by another operation for more than 10 s.",
        remedy="Try again.",
        values={"host": host.name},
    )


def _foreign(host: Host, instance: str, owner: str) -> Conflict:
    return Conflict.of(
        "host.foreign",
        f"{instance} on {host.name} belongs to another backend ({owner}).",
        remedy="Adopt it, or act on it from its own backend.",
        values={"host": host.name, "instance": instance, "owner": owner},
    )


def _start_refused(host: Host, instance: str, generation: int, lines: list[str]) -> Conflict:
    """Why START refused, as an error."""
    text = "\n".join(lines)
    values: dict[str, Any] = {"host": host.name, "instance": instance, "generation": generation}
    what = f"{instance} generation {generation} was not started on {host.name}"
    alive, newer, other = _line(text, "ALIVE"), _line(text, "NEWER"), _line(text, "FOREIGN")
    ports = launching.taken(lines)
    if alive is not None:
        older, *pids = alive.split()
        return Conflict.of(
            "life.still_alive",
            f"{what}: processes of generation {older} still live ({', '.join(pids)}).",
            remedy="Stop the instance first.",
            values={**values, "pids": [int(p) for p in pids]},
        )
    if ports:
        by = [f"{p} by {n or 'a process'} (pid {i})" if i else f"{p}" for p, i, n in ports]
        return Conflict.of(
            "life.port_held",
            f"{what}: its ports are listened on: {', '.join(by)}.",
            remedy="End that program, or place the instance anew.",
            values={**values, "ports": [p for p, _, _ in ports], "pids": [i for _, i, _ in ports]},
        )
    if newer is not None:
        return Conflict.of(
            "life.newer", f"{what}: generation {newer} was started already.", values=values
        )
    if other is not None:
        return _foreign(host, instance, other)
    if "UNCLAIMED" in lines:
        return Conflict.of(
            "life.unclaimed", f"{what}: it holds no claim there.",
            remedy="Claim its accelerators and ports first.", values=values,
        )  # fmt: skip
    return _busy(host, f"{instance} is")
