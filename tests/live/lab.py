"""A laboratory: embedded hosts in a child process, and a backend that may be killed and revived."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.client.http import BackendGone, HttpClient
from backend.domain.errors import NotFound
from backend.domain.views import GroupView
from backend.paths import Paths
from tests import planted
from tests.live.watch import Watch, starts_at

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}


@dataclass(frozen=True)
class Living:
    """A process that a host's instance directory records and that lives."""

    host: str
    instance: str
    generation: int
    pid: int
    start: int


class Lab:
    """Hosts, a model folder and a state directory under `root`; `python -m` children only."""

    def __init__(self, root: Path, hosts: int = 3, accelerators: int = 2) -> None:
        self.root, self._hosts, self._accelerators = root, hosts, accelerators
        self.model = root / "models" / "tiny"
        self.state = root / "state"
        self.inventory: list[dict[str, Any]] = []
        self._sandbox: asyncio.subprocess.Process | None = None
        self._daemon: asyncio.subprocess.Process | None = None
        self._client: HttpClient | None = None
        self.env = {"PDTUI_CANARY_FORMED": "0", "PDTUI_CANARY_EVERY_S": "0"}
        self.deaths = 0
        self.patience_s = 120.0
        self.watch = Watch(root)

    async def up(self, plan: Sequence[dict[str, Any]] | None = None) -> None:
        """Start the hosts."""
        self.model.mkdir(parents=True)
        (self.model / "config.json").write_text(json.dumps(CONFIG))
        self.state.mkdir(mode=0o700)
        argv = [sys.executable, "-m", "backend.sandbox", "--root", str(self.root / "sandbox")]
        if plan is None:
            argv += ["--hosts", str(self._hosts), "--accelerators", str(self._accelerators)]
        else:
            file = self.root / "plan.json"
            file.write_text(json.dumps(list(plan)))
            argv += ["--plan", str(file)]
        self._sandbox = await asyncio.create_subprocess_exec(
            *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._sandbox.stdout is not None
        async with asyncio.timeout(180):
            ready = json.loads(await self._sandbox.stdout.readline())
        self.inventory = ready["inventory"]
        shutil.copy(ready["known_hosts"], self.state / "known_hosts")
        self.watch.start()

    async def down(self) -> None:
        """End the backend, then the hosts and everything on them.

        Raises AssertionError for what the watch saw meanwhile.
        """
        await self.stop_backend()
        try:
            await self.watch.stop()
        finally:
            await self._end_hosts()

    async def _end_hosts(self) -> None:
        if self._sandbox is not None and self._sandbox.returncode is None:
            self._sandbox.terminate()
            async with asyncio.timeout(90):
                await self._sandbox.wait()
        if self._sandbox is not None and self._sandbox.stdin is not None:
            self._sandbox.stdin.close()

    async def order(self, host: str, **what: Any) -> dict[str, Any]:
        """Tell the hosts' process something: `faults={...}`, `engine={...}`, `drop=True`."""
        assert self._sandbox is not None
        assert self._sandbox.stdin is not None
        assert self._sandbox.stdout is not None
        self._sandbox.stdin.write(json.dumps({"host": host, **what}).encode() + b"\n")
        async with asyncio.timeout(60):
            answer: dict[str, Any] = json.loads(await self._sandbox.stdout.readline())
        assert answer["ok"], answer
        return answer

    async def client(self) -> HttpClient:
        """A client of the backend, which is started when it does not live."""
        if self._daemon is not None and self._daemon.returncode is None and self._client:
            return self._client
        if self._daemon is not None:
            self.deaths += 1
        if self._client is not None:
            await self._client.aclose()
        self._daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "backend.daemon", "--state-dir", str(self.state),
            env={**os.environ, planted.SOURCE: planted.REFERRED, **self.env},
        )  # fmt: skip
        self._client = HttpClient(Paths.default(self.state).socket)
        async with asyncio.timeout(self.patience_s):
            while True:
                try:
                    await self._client.health()
                    return self._client
                except BackendGone:
                    if self._daemon.returncode is not None:
                        return await self.client()
                    await asyncio.sleep(0.05)

    async def add_hosts(self) -> None:
        """Put every host into the inventory."""
        client = await self.client()
        await asyncio.gather(*(client.add_host(h) for h in self.inventory))

    async def kill_backend(self) -> None:
        """SIGKILL; the next `client()` starts another."""
        if self._daemon is not None and self._daemon.returncode is None:
            self._daemon.kill()
            await self._daemon.wait()

    async def stop_backend(self) -> None:
        """End it in good order."""
        if self._daemon is not None and self._daemon.returncode is None:
            self._daemon.terminate()
            async with asyncio.timeout(90):
                await self._daemon.wait()
        if self._client is not None:
            await self._client.aclose()
        self._daemon = self._client = None

    async def asked(self, question: Callable[[HttpClient], Any]) -> Any:
        """The answer, asked again while backends die under the question."""
        async with asyncio.timeout(1.5 * self.patience_s):
            while True:
                client = await self.client()
                try:
                    return await question(client)
                except BackendGone:
                    await self._reap()

    async def _reap(self) -> None:
        """Give a dying backend a moment to be seen as dead."""
        assert self._daemon is not None
        try:
            await asyncio.wait_for(self._daemon.wait(), 0.2)
        except TimeoutError:
            return

    async def until(
        self, name: str, done: Callable[[GroupView], bool], seconds: float = 240
    ) -> GroupView:
        """The group once `done` holds, however often the backend dies on the way."""
        group: GroupView | None = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    group = await self.asked(lambda c: c.group(name))
                    self.watch.check()
                    if done(group):
                        return group
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"never came true; last seen: {group}\n{self.told()}") from None

    async def until_gone(self, name: str, seconds: float = 240) -> None:
        """Wait until the deployment is forgotten."""
        async with asyncio.timeout(seconds):
            try:
                while True:
                    await self.asked(lambda c: c.group(name))
                    await asyncio.sleep(0.05)
            except NotFound:
                return

    def told(self) -> str:
        """The end of the backend's log, for a failing test."""
        log = self.state / "backend.log"
        return log.read_text()[-4000:] if log.exists() else ""

    def living(self) -> list[Living]:
        """Every recorded leader that lives, whatever generation."""
        found = []
        for run in sorted(self.root.glob("sandbox/hosts/*/**/instances/*/g*/run")):
            facts = dict(line.split("=", 1) for line in run.read_text().split() if "=" in line)
            if starts_at(int(facts["pid"])) == int(facts["start"]):
                found.append(
                    Living(
                        host=run.relative_to(self.root / "sandbox" / "hosts").parts[0],
                        instance=run.parts[-3],
                        generation=int(run.parts[-2][1:]),
                        pid=int(facts["pid"]),
                        start=int(facts["start"]),
                    )
                )
        return found

    def directories(self) -> set[str]:
        """Names of all instance directories on all hosts."""
        return {
            d.name
            for d in self.root.glob("sandbox/hosts/*/**/instances/*")
            if d.is_dir() and (d / "claim").exists()
        }


def deployment(
    model: Path,
    name: str = "chat",
    *,
    prefill: int = 1,
    decode: int = 1,
    parameters: Sequence[str] = ("--max-model-len", "8192"),
    mode: str = "vllm-nixl",
    **spec: Any,
) -> dict[str, Any]:
    """A document of a built-in mode."""
    return {
        "apiVersion": "pdtui/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "model": str(model),
            "engine": "vllm",
            "parameters": list(parameters),
            "env": planted.ENV,
            "disaggregation": {"mode": mode},
            "roles": {"prefill": {"replicas": prefill}, "decode": {"replicas": decode}},
            **spec,
        },
    }


def serving(prefill: int, decode: int) -> Callable[[GroupView], bool]:
    """Whether exactly so many members serve, nobody leaves, and the endpoint stands."""

    def done(g: GroupView) -> bool:
        counts = g.roles
        exact = (
            counts["prefill"].ready == counts["prefill"].present == prefill
            and counts["decode"].ready == counts["decode"].present == decode
        )
        calm = all(m.state == "ready" for m in g.members)
        known = all(m.in_router for m in g.members if m.role != "router")
        return g.status == "Running" and exact and calm and known and g.phase is None

    return done
