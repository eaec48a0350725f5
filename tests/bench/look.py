"""Looks at every host of an inventory at once and ends when enough have answered.

`python -m tests.bench.look INVENTORY.json KNOWN_HOSTS ENOUGH`. Exit code 1 when one that was waited
for shows no accelerator.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from backend.adapters.facts import look
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import PdError
from backend.domain.host import Host


async def main(inventory: Path, known_hosts: Path, enough: int) -> int:
    """Waits for `enough` hosts; those that fail count as nothing."""
    hosts = [Host.model_validate(h) for h in json.loads(inventory.read_text())]
    pool = SshPool(known_hosts, user_known_hosts=[])
    tasks = [asyncio.create_task(look(pool, h)) for h in hosts]
    seen = 0
    for done in asyncio.as_completed(tasks):
        try:
            seen += bool((await done).accelerators)
        except PdError:
            continue
        if seen >= enough:
            break
    sys.stdout.write(f"{seen} of {len(hosts)} seen\n")
    sys.stdout.flush()
    return 0 if seen >= enough else 1


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
    os._exit(code)  # what the hung hosts' connections still wait for is of no interest
