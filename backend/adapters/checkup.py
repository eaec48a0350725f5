"""Take the deeper look at a host, and try what only trying tells: forwarding, the way to others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from backend.adapters.ports import MOST
from backend.adapters.ssh.errors import DialFailed
from backend.adapters.ssh.pool import SshPool
from backend.domain.checkup import RUNTIMES, Checkup, Reach
from backend.domain.errors import PdError, TimedOut
from backend.domain.host import Host
from backend.probes import checkup as probe

DISCARD = 9
"""A port that hardly anything listens on: being refused by it proves that forwarding works."""


async def check_up(
    pool: SshPool,
    host: Host,
    address: str,
    *,
    programs: Sequence[str] = (),
    runtimes: Sequence[str] = RUNTIMES,
    models: Sequence[str] = (),
    ports: Sequence[int] = (),
    timeout: float = 40.0,
) -> Checkup:
    """The host's deeper facts; `address` is where the others reach it, `ports` are tried to bind.

    Raises the HostError kinds and TimedOut.
    """
    await pool.connect(host)
    args = probe.arguments(host.work_dir, runtimes, programs, models, ports[:MOST])
    dialled = asyncio.ensure_future(_forwarding(pool, host, address))
    try:
        sent = time.time()
        out = await pool.run(host, probe.SCRIPT, args=args, timeout=timeout)
        found = probe.parse(out.stdout, sent, time.time())
        return found.model_copy(update={"forwarding": await dialled})
    finally:
        dialled.cancel()
        await asyncio.gather(dialled, return_exceptions=True)


async def _forwarding(pool: SshPool, host: Host, address: str) -> str:
    """Empty when the host's sshd opens TCP connections for us, else why it does not."""
    try:
        _, writer = await pool.open_tcp(host, address, DISCARD, timeout=5.0)
    except DialFailed:
        return ""  # refused by the port: sshd has dialled it for us
    except PdError as error:
        return str(error.problem.values.get("cause") or error.problem.message)
    writer.close()
    return ""


REACH_S = 4.0


async def reach(
    pool: SshPool, host: Host, interface: str, targets: Mapping[str, tuple[str, int]]
) -> tuple[Reach, ...]:
    """Whether the host gets to each target's address and port, and over which interface.

    A port that refuses has answered: the way is there. `ok` is None where nobody could tell.
    """
    if not targets:
        return ()
    addresses = [a for a, _ in targets.values()]
    try:
        out = await pool.run(host, probe.ROUTES, args=addresses, timeout=10.0)
        ways = probe.routes(out.stdout)
    except PdError:
        ways = {}
    return tuple(
        await asyncio.gather(
            *(
                _reach(pool, host, interface, name, address, port, ways.get(address, ""))
                for name, (address, port) in targets.items()
            )
        )
    )


async def _reach(
    pool: SshPool, host: Host, interface: str, name: str, address: str, port: int, via: str
) -> Reach:
    found = Reach(target=name, address=address, interface=interface, via=via)
    try:
        _, writer = await pool.open_tcp(host, address, port, timeout=REACH_S)
    except DialFailed as error:
        cause = str(error.problem.values.get("cause", ""))
        answered = "refused" in cause.lower()
        return found.model_copy(update={"ok": answered, "seen": "" if answered else cause})
    except TimedOut:
        said = f"no answer within {REACH_S:g} s"
        return found.model_copy(update={"seen": said})
    except PdError as error:
        return found.model_copy(update={"seen": error.problem.message})
    writer.close()
    return found.model_copy(update={"ok": True})
