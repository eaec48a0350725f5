"""Simulated engines as real processes, each with its own ports, for the tests beside this file."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from backend.sandbox import proc
from backend.sandbox.engine import __file__ as engine_file

PROGRAM = [sys.executable, "-P", str(Path(engine_file).with_name("__main__.py"))]
ADDRESS = (
    f"127.{100 + os.getpid() // 60000 % 100}.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"
)
"""An address of this test process alone: its ports are nobody else's."""


def free_port() -> int:
    """A port of `ADDRESS` that nothing listens on."""
    with socket.socket() as sock:
        sock.bind((ADDRESS, 0))
        return int(sock.getsockname()[1])


def write_model(path: Path, **fields: Any) -> Path:
    """A model folder with the config.json of a tiny model."""
    path.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "hidden_size": 128, "num_hidden_layers": 2,
        "max_position_embeddings": 4096, "torch_dtype": "bfloat16", **fields,
    }  # fmt: skip
    (path / "config.json").write_text(json.dumps(config))
    return path


class Engine:
    """One running engine and how to talk to it."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, side: int, log: Path):
        self.process, self.port, self.side, self.log = process, port, side, log
        self.http = httpx.AsyncClient(
            base_url=f"http://{ADDRESS}:{port}", timeout=20, trust_env=False
        )

    def text(self) -> str:
        """Everything it logged so far."""
        return self.log.read_text()

    @property
    def core(self) -> proc.Process | None:
        """Its engine core."""
        for p in proc.every().values():
            if p.session == self.process.pid and p.name.startswith("VLLM::") and p.lives:
                return p
        return None

    async def until_ready(self) -> None:
        """Wait for /health."""
        async with asyncio.timeout(20):
            while True:
                try:
                    await self.http.get("/health")
                except httpx.TransportError:
                    assert self.process.returncode is None, self.text()
                    await asyncio.sleep(0.01)
                else:
                    return

    async def ask(self, prompt: str, **more: Any) -> httpx.Response:
        """A completion."""
        return await self.http.post("/v1/completions", json={"prompt": prompt, **more})

    async def switch(self, **switches: Any) -> None:
        """Change failures at run time."""
        assert (await self.http.post("/sim", json=switches)).status_code == 200

    async def metric(self, name: str, **labels: str) -> float:
        """One sample's value."""
        text = (await self.http.get("/metrics")).text
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                ours = sample.name.partition(":")[2] == name
                if ours and labels.items() <= sample.labels.items():
                    return float(sample.value)
        raise AssertionError(f"no metric {name} {labels}")

    async def sources(self) -> tuple[int, int, int]:
        """Prompt tokens computed here, found in the cache, and got from prefill."""
        names = ("local_compute", "local_cache_hit", "external_kv_transfer")
        values = [await self.metric("prompt_tokens_by_source_total", source=n) for n in names]
        return int(values[0]), int(values[1]), int(values[2])

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the API process and wait for its end."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 20)


async def sglang(tmp_path: Path, model: Path, *flags: str, port: int | None = None) -> Engine:
    """Start an SGLang server; it may not be ready, or fail. `side` is its bootstrap port."""
    port, side = port or free_port(), free_port()
    log = tmp_path / f"sglang-{port}.log"
    argv = [
        "sglang", "--model-path", str(model), "--host", ADDRESS, "--port", str(port),
        "--disaggregation-bootstrap-port", str(side), "--enable-metrics", *flags,
    ]  # fmt: skip
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, *argv, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, cwd=tmp_path,
            start_new_session=True, stdin=asyncio.subprocess.DEVNULL, stdout=out,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
    return Engine(process, port, side, log)


async def launch(
    tmp_path: Path, model: Path | str, *flags: str, env: dict[str, str] | None = None,
    kv: dict[str, Any] | None = None, port: int | None = None, side: int | None = None,
) -> Engine:  # fmt: skip
    """Start an engine; it may not be ready, or fail."""
    port, side = port or free_port(), side or free_port()
    log = tmp_path / f"engine-{port}-{free_port()}.log"
    argv = ["serve", str(model), "--host", ADDRESS, "--port", str(port), *flags]
    if kv is not None:
        argv += ["--kv-transfer-config", json.dumps(kv)]
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8",
        "VLLM_NIXL_SIDE_CHANNEL_HOST": ADDRESS, "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side),
        **(env or {}),
    }  # fmt: skip
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, *argv, env=environ, cwd=tmp_path, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
    return Engine(process, port, side, log)


@asynccontextmanager
async def running(
    tmp_path: Path, model: Path | str, *flags: str, **more: Any
) -> AsyncIterator[Engine]:
    """An engine that serves; killed with all its processes in the end."""
    engine = await launch(tmp_path, model, *flags, **more)
    try:
        await engine.until_ready()
        yield engine
    finally:
        await destroy(engine)


async def destroy(engine: Engine) -> None:
    """Kill every process of the engine's session."""
    await engine.http.aclose()
    for p in proc.every().values():
        if p.session == engine.process.pid and p.lives:
            proc.kill(p, signal.SIGKILL)
    await engine.process.wait()


async def failed(engine: Engine) -> int:
    """Wait for the exit code of an engine that does not start."""
    code = await asyncio.wait_for(engine.process.wait(), 20)
    await engine.http.aclose()
    return code
