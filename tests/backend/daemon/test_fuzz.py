"""The running daemon, fuzzed by its own description: no failure of ours, no answer beside it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.client.http import HttpClient
from backend.paths import Paths
from tests.backend.daemon import fuzz_hooks, processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HERE = Path(__file__).parent
SECONDS = "75"


async def test_the_api_is_what_its_description_says() -> None:
    async with processes.state() as folder:
        first = await processes.daemon(folder)
        await processes.answering(folder)
        client = HttpClient(Paths.default(folder).socket)
        token = (await client.add_token(fuzz_hooks.OWN_TOKEN, "admin")).token
        await client.aclose()
        assert await processes.end(first) == 0
        daemon = await processes.daemon(folder, "--listen", "127.0.0.1:0")
        try:
            url = await _url(daemon)
            argv = [
                sys.executable, "-m", "schemathesis.cli",
                "--config-file", str(HERE / "schemathesis.toml"), "run", f"{url}/v1/openapi.json",
                "--max-time", SECONDS, "--workers", "2", "--no-color", "--seed", "7",
            ]  # fmt: skip
            env = {
                **os.environ, "SCHEMATHESIS_HOOKS": "tests.backend.daemon.fuzz_hooks",
                "PYTHONPATH": str(HERE.parents[2]), "NO_PROXY": "*", "PDT_FUZZ_TOKEN": str(token),
            }  # fmt: skip
            done = await asyncio.to_thread(
                subprocess.run, argv, env=env, cwd=folder.parent, capture_output=True, text=True,
                timeout=300, check=False,
            )  # fmt: skip
            await processes.answering(folder, daemon.pid)  # it is still the same that lives
            client = HttpClient(Paths.default(folder).socket)
            tokens = await client.tokens()
            await client.aclose()
        finally:
            assert await processes.end(daemon) == 0
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        tested = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
        assert tested is not None, done.stdout[-2000:]
        assert int(tested[1]) > 0
        assert fuzz_hooks.OWN_TOKEN in {t.name for t in tokens}, "it asked without a token"
        log = Paths.default(folder).log.read_text()
        assert "Traceback" not in log


SINCE = ("0", "1", "-1", "9007199254740992", "9007199254740993", "9" * 400, "1e3", "²", "٣", "",
         "NaN", "null", "1;2", "a b", "%00", "true")  # fmt: skip
"""Marks to go on from: of changes there are, of none, and of none there can be."""


async def test_the_stream_answers_every_mark() -> None:
    async with processes.state() as folder:
        daemon = await processes.daemon(folder)
        try:
            await processes.answering(folder)
            transport = httpx.AsyncHTTPTransport(uds=str(Paths.default(folder).socket))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://pdtui", timeout=20, trust_env=False
            ) as http:
                begins = {": hello", "event: snapshot"}
                for mark in SINCE:
                    assert await _first(http, params={"since": mark}) in begins | {"400", "422"}, (
                        mark
                    )
                    header = {b"last-event-id": mark.encode()}
                    assert await _first(http, headers=header) in begins, mark
            await processes.answering(folder, daemon.pid)
        finally:
            assert await processes.end(daemon) == 0
        assert "Traceback" not in Paths.default(folder).log.read_text()


async def _first(http: httpx.AsyncClient, **asked: Any) -> str:
    """What the stream says first that is no number, or the status of its refusal."""
    async with http.stream("GET", "/v1/changes", **asked) as answer:
        if answer.status_code != httpx.codes.OK:
            assert answer.headers["content-type"] == "application/problem+json"
            return str(answer.status_code)
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if not line.startswith("id:"):
                return line
    return "nothing"


async def _url(daemon: processes.Process) -> str:
    assert daemon.stderr is not None
    async with asyncio.timeout(processes.PATIENCE_S):
        line = (await daemon.stderr.readline()).decode()
    found = re.search(r"http://\S+", line)
    assert found is not None, line
    return found[0]
