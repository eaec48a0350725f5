"""What watching costs: one round of health and metrics of 100 members, in CPU seconds of ours.

Pages are a real vLLM's, served by a process of its own behind four embedded hosts; every request
goes through SSH. The rival asks for the same pages directly and reads them with prometheus_client.
A round is due every 5 s: 500 ms are a tenth of a core.
"""

from __future__ import annotations

import asyncio
import atexit
import subprocess
import sys
import time
from collections.abc import Coroutine
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from backend.adapters.http import HostHttp
from backend.adapters.recipes import load_catalogue
from backend.adapters.ssh.pool import SshPool
from backend.domain.effect import Side, effects
from backend.domain.figures import figures
from backend.domain.host import Host
from backend.domain.pages import PageReader
from backend.observe.ring import Ring
from tests.bench.discovery import Fleet
from tests.bench.runner import Bench, BenchError

MEMBERS, HOSTS, GROUP, EVERY_S = 100, 4, 10, 5.0
PAGE = Path(__file__).parents[1] / "data" / "metrics" / "metrics-vllm-0.32-nixl-decode.txt"
_SERVER = """
import asyncio, sys
body = open(sys.argv[1], "rb").read()
LINES = "HTTP/1.1 200 OK", "content-type: text/plain; charset=utf-8", "content-length: %d", "", ""
HEAD = "\\r\\n".join(LINES).encode()
page = HEAD % len(body) + body
well = HEAD % 0

async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            writer.write(page if head.startswith(b"GET /metrics") else well)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Rounds:
    """Rounds over connections that stay open, on a loop of their own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(PAGE)], stdout=subprocess.PIPE, text=True
        )
        atexit.register(self.server.kill)
        assert self.server.stdout is not None
        self.port = int(self.server.stdout.readline())
        fleet = Fleet(HOSTS)
        self.hosts = [Host.model_validate(h) for h in fleet.hosts]
        by_name = {h.name: h for h in self.hosts}
        self.pool = SshPool(Path(fleet.known_hosts), inventory=by_name.get)
        self.http = HostHttp(self.pool)
        catalogue = load_catalogue()
        self.recipe = catalogue.modes["vllm-nixl"].metrics
        self.readers = [PageReader(catalogue.series) for _ in range(MEMBERS)]
        self.rings = [Ring() for _ in range(MEMBERS)]
        self.direct = httpx.AsyncClient(trust_env=False)
        self.at_once = asyncio.Semaphore(16)  # in use they are spread over the five seconds
        self.at = 0.0

    def url(self, n: int) -> str:
        """Where a member answers: at its host's own address, which is forwarded to."""
        return f"http://{self.hosts[n % HOSTS].address}:{self.port}"

    def spend(self, work: Coroutine[Any, Any, None]) -> float:
        """CPU seconds of this process for some work."""
        begun = time.process_time()
        self.loop.run_until_complete(work)
        return time.process_time() - begun

    async def ours(self) -> None:
        """One round: health and metrics of every member, then every group judged."""
        self.at += EVERY_S
        await asyncio.gather(*(self._in_turn(n) for n in range(MEMBERS)))
        for first in range(0, MEMBERS, GROUP):
            sides = [
                Side(str(n), "decode" if n % 2 else "prefill", self.url(n), self.rings[n])
                for n in range(first, first + GROUP)
            ]
            effects(self.recipe, sides, None, self.at, EVERY_S)  # as after the router's page
            for side in sides:  # as after each member's own
                effects(self.recipe, [side], None, self.at, EVERY_S)
                figures(self.rings[int(side.id)].since(self.at - 6 * EVERY_S))

    async def _in_turn(self, n: int) -> None:
        async with self.at_once:
            await self._member(n)

    async def _member(self, n: int) -> None:
        host, url = self.hosts[n % HOSTS], self.url(n)
        well = await self.http.request(host, "GET", f"{url}/health")
        page = await self.http.request(host, "GET", f"{url}/metrics")
        if well.status_code != httpx.codes.OK or page.status_code != httpx.codes.OK:
            raise BenchError(f"answers {well.status_code} and {page.status_code}")
        self.rings[n].add(self.at, 1.0, self.readers[n].read(page.text))

    async def rival(self) -> None:
        """The same pages, asked for directly and read as prometheus_client reads them."""
        for n in range(MEMBERS):
            page = await self.direct.get(f"{self.url(n)}/metrics")
            if sum(len(f.samples) for f in text_string_to_metric_families(page.text)) < 100:
                raise BenchError("no page")


@cache
def rounds() -> Rounds:
    """Made once, for both."""
    return Rounds()


def benches() -> list[Bench]:
    """The comparisons of this file."""
    return [
        Bench(
            f"watching {MEMBERS} members, a round, CPU",
            lambda: rounds().spend(rounds().ours()),
            "the pages read by prometheus_client",
            lambda: rounds().spend(rounds().rival()),
            aim="under 500 ms each 5 s", rounds=5,
        )
    ]  # fmt: skip
