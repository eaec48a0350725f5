"""Processes of this machine as /proc shows them, and ending those that belong to one run.

A process belongs to a run when its environment carries the run's mark, when it is in the session
of a recorded leader whose pid and start time both match, when it has no environment left at all and
works in one of the run's homes, or when it descends from such a one. Routers and engine cores
overwrite their environment, so the mark alone is not enough.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "PDTUI_SANDBOX"
"""Environment variable that every process of a sandbox starts with; its value is the run id."""

_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 0.02
_LAST_WAIT_S = 5.0


@dataclass(frozen=True)
class Process:
    """One process. `start` is field 22 of its stat: clock ticks after boot."""

    pid: int
    name: str
    state: str
    parent: int
    session: int
    start: int

    @property
    def lives(self) -> bool:
        """Whether it is more than a name nobody has waited for."""
        return self.state not in "ZX"


def look(pid: int) -> Process | None:
    """The process of that number, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    words = tail.split()
    return Process(
        pid, head.partition("(")[2], words[0], int(words[1]), int(words[3]), int(words[19])
    )


def every() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    found = (look(int(p)) for p in os.listdir("/proc") if p.isdecimal())
    return {p.pid: p for p in found if p}


def boot_id() -> str:
    """The running kernel's boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _marked(pid: int, run_id: str) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={run_id}".encode() in environ.split(b"\0")


def _nameless(pid: int, homes: Sequence[Path]) -> bool:
    """Whether a process overwrote its environment and has its working directory in a home."""
    try:
        if Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0 "):
            return False
        place = Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return False
    return any(place.is_relative_to(home) for home in homes)


def _recorded_sessions(homes: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """(pid, start) of each leader and supervisor an instance directory of `homes` names."""
    boot = boot_id()
    for home in homes:
        for path in home.glob(".pdtui/instances/*/g*/run"):
            with contextlib.suppress(OSError, ValueError):
                lines = path.read_text().splitlines()
                seen = dict(line.split("=", 1) for line in lines if "=" in line)
                if seen.get("boot") != boot:
                    continue
                for pid, start in (("pid", "start"), ("sup", "supstart")):
                    if pid in seen and start in seen:
                        yield int(seen[pid]), int(seen[start])


def belonging(run_id: str, homes: Iterable[Path] = (), roots: Iterable[int] = ()) -> list[Process]:
    """The living processes of a run but this one; all descendants of `roots` (pids) count."""
    table, homes = every(), list(homes)
    known = {pid for pid in table if _marked(pid, run_id) or _nameless(pid, homes)}
    recorded = list(_recorded_sessions(homes))
    leading = {pid for pid, _ in recorded}
    sessions = set()
    for pid, start in recorded:
        leader = table.get(pid)
        if leader and leader.start == start:
            known.add(pid)
            if leader.session in leading:  # one the run made, never the one we were started in
                sessions.add(leader.session)
    if sessions:
        known |= {p.pid for p in table.values() if p.session in sessions}
    mine = os.getpid()
    parents = known | set(roots)
    while True:
        more = {p.pid for p in table.values() if p.parent in parents} - parents
        if not more:
            break
        parents |= more
        known |= more
    known.discard(mine)
    return [table[pid] for pid in sorted(known) if pid in table and table[pid].lives]


def kill(process: Process, number: signal.Signals) -> None:
    """Signal exactly that process: its pid must still have its start time."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = look(process.pid)
        if now and now.start == process.start:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def end(
    run_id: str, homes: Iterable[Path] = (), roots: Iterable[int] = (), grace_s: float = 1.0
) -> list[Process]:
    """End every process of a run: TERM, `grace_s` seconds, KILL. Blocks; returns what is left."""
    homes, roots = list(homes), list(roots)
    known: dict[tuple[int, int], Process] = {}

    def living() -> list[Process]:
        # The descent from a root is lost once a middle process dies: remember who was found.
        for p in belonging(run_id, homes, roots):
            known[p.pid, p.start] = p
        return [
            p for p in known.values()
            if (now := look(p.pid)) and now.start == p.start and now.lives
        ]  # fmt: skip

    for number, patience in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _LAST_WAIT_S)):
        told: set[tuple[int, int]] = set()
        deadline = time.monotonic() + patience
        while left := living():
            for p in left:
                if number == signal.SIGKILL or (p.pid, p.start) not in told:
                    kill(p, number)
                    told.add((p.pid, p.start))
            if time.monotonic() > deadline:
                break
            time.sleep(_TICK_S)
        if not left:
            return []
    return living()


def become_subreaper() -> None:
    """Have every orphaned descendant re-parented to this process. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def reap_adopted(own: Iterable[int]) -> int:
    """Wait for dead children that this process did not start itself; returns how many.

    `own` are the pids whose starter waits for them: touching those would steal its answer.
    """
    spared, count = set(own), 0
    for tasks in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for word in tasks.read_text().split():
                child = look(int(word))
                if child and child.state == "Z" and child.pid not in spared:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(child.pid, os.WNOHANG)
                        count += 1
    return count
