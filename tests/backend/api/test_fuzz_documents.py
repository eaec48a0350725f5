"""Whatever a document says, the API and the commands explain it: never a traceback, never a 5xx."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Container
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from backend.api.app import create_app
from backend.bootstrap import build
from backend.paths import Paths
from pdtui.cli import app
from pdtui.state.yamltext import dump
from tests.backend.daemon import processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORDS = st.sampled_from([
    "apiVersion", "kind", "metadata", "name", "labels", "spec", "model", "engine", "parameters",
    "env", "roles", "prefill", "decode", "router", "replicas", "disaggregation", "mode", "hosts",
    "placement", "accelerators", "extended_kv_cache", "address", "provider", "endpoint", "settings",
    "service_port_range", "scaling_schedule", "run_command", "image", "allow", "connector_extra",
])  # fmt: skip
SAYS = st.sampled_from([
    "pdtui/v1", "Deployment", "CacheService", "Host", "chat", "vllm", "sglang", "custom", "/m",
    "vllm-nixl", "sglang-mooncake", "lmcache", "h:1", "--max-model-len", "32k", "--tp=4", "\0", "",
    "********", "{{port}}", "{{nope}}", "中文", "\ud83c", "--kv-transfer-config", "{}", "{", "-1",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | SAYS | st.text()
ANY = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=20,
)
ROLE = st.dictionaries(WORDS, ANY, max_size=3)
NEAR = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["Deployment", "CacheService", "Host"]) | SAYS,
        "metadata": st.fixed_dictionaries({"name": st.just("chat") | SAYS}) | ANY,
        "spec": st.fixed_dictionaries(
            {"model": st.just("/m") | ANY, "engine": st.sampled_from(["vllm", "sglang", "custom"])},
            optional={
                "parameters": st.lists(SAYS | st.text(), max_size=5) | ANY,
                "env": st.dictionaries(st.text(max_size=5), LEAVES, max_size=3),
                "disaggregation": st.fixed_dictionaries({"mode": SAYS}) | ANY,
                "roles": st.fixed_dictionaries({}, optional={"prefill": ROLE, "decode": ROLE}),
                "hosts": ANY,
                "placement": ANY,
                "extended_kv_cache": ANY,
            },
        )
        | st.dictionaries(WORDS, ANY, max_size=5),
    }
)
QUIET = settings(
    deadline=None, max_examples=80, suppress_health_check=list(HealthCheck), database=None
)


ROUTES = (
    ("POST", "/check"), ("POST", "/plan"), ("POST", "/mode-choices"),
    ("PUT", "/deployments/chat"), ("PUT", "/caches/chat"), ("PUT", "/hosts/chat"),
)  # fmt: skip
"""What takes a document."""
HEADERS = {"content-type": "application/json", "if-none-match": "*"}


async def asked(bodies: list[bytes]) -> list[tuple[str, bytes, int, str]]:
    """Answers that are no answer: where, to what, its status, its text."""
    bad = []
    with tempfile.TemporaryDirectory(prefix="pdtui-fuzz-") as folder:
        async with build(Paths.default(Path(folder) / "state")) as backend:
            transport = httpx.ASGITransport(create_app(backend, "0"), raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://pdtui/v1", timeout=60,
                headers=HEADERS,
            ) as http:  # fmt: skip
                for body in bodies:
                    for method, path in ROUTES:
                        answer = await http.request(
                            method, path, content=body, params={"dry_run": True}
                        )
                        if answer.status_code >= 500:
                            bad.append((f"{method} {path}", body, answer.status_code, answer.text))
    return bad


def test_the_api_explains_every_document() -> None:
    bodies: list[bytes] = []

    @QUIET
    @given(NEAR | ANY)
    def gather(document: Any) -> None:
        bodies.append(json.dumps(document).encode())

    gather()
    bodies += [
        b"",
        b"{",
        b"[" * 3000,
        b'{"a":' * 3000,
        b"9" * 5000,
        b"\xff",
        b"NaN",
        b'{"a":1e999}',
    ]
    assert asyncio.run(asked(bodies)) == []


@QUIET
@given((NEAR | ANY) | st.text())
def test_the_commands_explain_every_file(document: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="pdtui-fuzz-") as folder:
        file = Path(folder) / "d.yaml"
        text = document if isinstance(document, str) else _written(document)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        for words in (["check", str(file)], ["convert", "gpustack", str(file)]):
            done = CliRunner().invoke(app, ["--state-dir", folder, *words])
            assert done.exit_code in (0, 1, 2), (words, text)
            assert done.exception is None or isinstance(done.exception, SystemExit), (words, text)


COMMANDS = (
    ["plan", "-f"], ["diff", "-f"], ["apply", "--yes", "--dry-run", "-f"], ["apply", "--yes", "-f"],
    ["delete", "--yes", "-f"],
)  # fmt: skip
"""What takes files and asks a backend about them."""


async def test_a_daemon_and_the_commands_explain_every_file() -> None:
    async with processes.state() as state:
        daemon = await processes.daemon(state)
        try:
            await processes.answering(state)
            await asyncio.to_thread(_commands_on, state)
            await processes.answering(state, daemon.pid)
        finally:
            assert await processes.end(daemon) == 0
        assert "Traceback" not in Paths.default(state).log.read_text()


def _commands_on(state: Path) -> None:
    """Every command on files of several documents, good and bad ones side by side."""

    @settings(QUIET, max_examples=30)
    @given(st.lists((NEAR | ANY) | st.text(), min_size=1, max_size=3))
    def explained(documents: list[Any]) -> None:
        file = state.parent / "d.yaml"
        texts = [d if isinstance(d, str) else _written(d) for d in documents]
        file.write_bytes("\n---\n".join(texts).encode("utf-8", "surrogatepass"))
        for words in COMMANDS:
            _ends_well([*words, str(file)], state, range(6), texts)

    explained()


def _ends_well(words: list[str], state: Path, codes: Container[int], told: Any) -> None:
    """A command ends by one of its codes, and not by an exception."""
    done = CliRunner().invoke(app, ["--state-dir", str(state), *words])
    assert done.exit_code in codes, (words, told, done.output)
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, told)


def _written(document: Any) -> str:
    try:
        return dump(document)
    except ValueError:
        return json.dumps(document)
