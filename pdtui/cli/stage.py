"""The demo's stage: embedded hosts in a child process, a model folder, a state directory."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.domain.errors import PdError

if TYPE_CHECKING:
    from backend.client.http import HttpClient

NAME = "chat"
MODEL_NAME = "qwen3-demo"
READY_S = 20.0
END_S = 15.0
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


def document(model: Path, decode: tuple[str, ...] = (), prefills: int = 2) -> dict[str, Any]:
    """The demo's deployment; `decode` are parameters that only its decode role gets."""
    shared = ["--max-model-len", "32768", "--gpu-memory-utilization", "0.9"]
    own = {"parameters": [*shared, *decode]} if decode else {}
    return {
        "apiVersion": "pdtui/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "labels": {"team": "demo"}},
        "spec": {
            "model": str(model),
            "served_model_name": MODEL_NAME,
            "engine": "vllm",
            "parameters": shared,
            "disaggregation": {"mode": "vllm-nixl"},
            "roles": {"prefill": {"replicas": prefills}, "decode": {"replicas": 1, **own}},
        },
    }


class Stage:
    """Hosts that live as long as this process: the child ends when its stdin does."""

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._root = Path(tempfile.mkdtemp(prefix="pdtui-demo-"))
        self._child: subprocess.Popen[str] | None = None
        self._ready: dict[str, Any] = {}
        self.model = self._root / "models" / "Qwen3-8B"
        self.state = self._root / "state"

    def up(self) -> None:
        """Start the hosts and wait until all of them listen. Raises PdError."""
        self.model.mkdir(parents=True)
        (self.model / "config.json").write_text(json.dumps(CONFIG, indent=1))
        self.state.mkdir(mode=0o700)
        argv = [sys.executable, "-m", "backend.sandbox", "--root", str(self._root / "hosts")]
        argv += ["--hosts", str(self._hosts), "--accelerators", "2"]
        log = (self._root / "hosts.log").open("w")
        self._child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        line = self._child.stdout.readline() if self._child.stdout else ""
        if not line:
            self._child.wait(READY_S)
            raise PdError.of(
                "demo.hosts",
                f"the embedded hosts did not start: {Path(log.name).read_text().strip()[-600:]}",
                remedy="If the router is missing, run `make demo`, which installs it.",
            )
        self._ready = json.loads(line)
        shutil.copy(self._ready["known_hosts"], self.state / "known_hosts")

    async def connect(self) -> HttpClient:
        """A backend of our own that knows the hosts."""
        import asyncio

        from backend.client.connect import open_client

        client = await open_client(self.state)
        await asyncio.gather(*(client.add_host(h) for h in self._ready["inventory"]))
        return client

    def down(self) -> list[int]:
        """End the hosts and everything that ran on them; returns pids that live on."""
        child = self._child
        left: list[int] = []
        if child is not None:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                left = [child.pid]
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self._root, ignore_errors=True)
        return left + self._marked()

    def _marked(self) -> list[int]:
        """Processes that still carry this run's mark in their environment."""
        mark = f"PDTUI_SANDBOX={self._ready.get('run_id', '-')}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    environment = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if mark in environment.split(b"\0"):
                    found.append(int(entry.name))
        return found
