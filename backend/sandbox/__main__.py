"""`python -m backend.sandbox`: embedded hosts as a child process.

It prints one JSON line when ready and lives until SIGTERM, SIGINT or the end of its stdin. Each
line on stdin is one order, a JSON object `{"host": NAME, ...}` with one of `"faults": {...}`,
`"engine": {...}`, `"drop": true`, `"change_key": true`; each gets one JSON line in answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from backend.domain.errors import PdError
from backend.sandbox.hosts import Sandbox
from backend.sandbox.plan import default_plans, read_plans


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def _obey(sandbox: Sandbox, line: str) -> dict[str, Any]:
    try:
        order = json.loads(line)
        host = sandbox.host(str(order["host"]))
        if "faults" in order:
            await host.set_faults(**order["faults"])
        if "engine" in order:
            host.set_engine(**order["engine"])
        if order.get("drop"):
            return {"ok": True, "dropped": await host.drop_connections()}
        if order.get("change_key"):
            await host.change_key()
    except PdError as e:
        return {"ok": False, "error": str(e)}
    except (ValueError, KeyError, TypeError) as e:
        return {"ok": False, "error": f"not an order: {e}"}
    return {"ok": True}


def _read_stdin(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
    """Pass stdin's lines, then None, to the loop; it ends with the process."""
    try:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)
    except RuntimeError:
        return  # the loop is closed: nobody is left to tell


async def _serve(options: argparse.Namespace) -> None:
    plans = (
        read_plans(options.plan)
        if options.plan
        else default_plans(options.hosts, options.accelerators)
    )
    sandbox = Sandbox(options.root, plans, adopt=True)
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lines.put_nowait, None)
    loop.add_signal_handler(signal.SIGCHLD, sandbox.reap)
    async with sandbox:
        _say(
            {
                "run_id": sandbox.run_id,
                "pid": os.getpid(),
                "known_hosts": str(sandbox.known_hosts),
                "inventory": [h.model_dump(mode="json") for h in sandbox.inventory()],
            }
        )
        threading.Thread(target=_read_stdin, args=(loop, lines), daemon=True).start()
        while (line := await lines.get()) is not None:
            if line.strip():
                _say(await _obey(sandbox, line))


def main() -> int:
    """Run until told to stop; exit code 1 when it could not start."""
    parser = argparse.ArgumentParser(prog="python -m backend.sandbox")
    parser.add_argument("--root", type=Path, required=True, help="directory of the homes and keys")
    parser.add_argument("--hosts", type=int, default=2, help="how many hosts (default 2)")
    parser.add_argument("--accelerators", type=int, default=2, help="accelerators of each host")
    parser.add_argument("--plan", type=Path, help="JSON list of host plans, instead of --hosts")
    try:
        asyncio.run(_serve(parser.parse_args()))
    except PdError as e:
        sys.stderr.write(f"{e}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
