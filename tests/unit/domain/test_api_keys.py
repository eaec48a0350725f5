"""Which key a member or router is asked with, and that no list of changes repeats one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from backend.adapters.keys import Keys
from backend.adapters.secrets import ended, resolved
from backend.domain.api_keys import asked_key, bearer, own_key
from backend.domain.deployment import Deployment
from backend.domain.errors import Refused
from backend.domain.group import Instance
from backend.domain.instance import LaunchSpec
from backend.domain.references import encoded
from backend.domain.revision import changes


def member(*argv: str, **env: object) -> Instance:
    launch = LaunchSpec(argv=("vllm", *argv), env=env, address="h", port=1)
    return Instance(
        id="chat-prefill-1", group="chat", role="prefill", host="h", revision="r", address="h",
        bands=(), since=0.0, launch=launch,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "own", "there"),
    [
        ("", "", member()),
        ("a", "a", member("--api-key", "a")),
        ("a", "a", member("--api-key=a", VLLM_API_KEY="b")),
        ("b", "", member(VLLM_API_KEY="b")),
    ],
)
def test_the_key_that_is_asked_for(asked: str, own: str, there: Instance) -> None:
    assert (asked_key(there.launch), own_key(there.launch)) == (asked, own)
    assert (asked_key(None), own_key(None)) == ("", "")
    assert bearer(asked) == ({"authorization": f"Bearer {asked}"} if asked else {})


async def test_a_key_kept_elsewhere_is_fetched_once(tmp_path: Path) -> None:
    kept = tmp_path / "key"
    kept.write_text("first-of-keys\n")
    keys, there = Keys(), member(VLLM_API_KEY={"from_file": str(kept)})
    assert await keys.headers((member(), there)) == {"authorization": "Bearer first-of-keys"}
    kept.unlink()
    assert await keys.headers((there,)) == {"authorization": "Bearer first-of-keys"}
    assert await Keys().headers((there,)) == {}  # not to be had: asked without
    assert await Keys().headers((member(),)) == {}


async def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reference = str(encoded({"from_file": str(tmp_path / "pipe")}))
    with pytest.raises(Refused, match="no regular file"):
        async with asyncio.timeout(30):
            await resolved({"KEY": reference}, "chat-prefill-1")


def test_changes_repeat_no_key_of_the_parameters() -> None:
    def document(*parameters: str) -> Deployment:
        spec = {"model": "/m", "engine": "vllm", "parameters": list(parameters)}
        return Deployment.model_validate({"metadata": {"name": "chat"}, "spec": spec})

    plain = document("--x", "1")
    one, two = (document("--x", "1", "--api-key", key) for key in ("sk-one", "sk-two"))
    inline = document("--x", "1", "--api-key=sk-one")
    for a, b in [(one, two), (plain, one), (one, plain), (one, inline), (document(), inline)]:
        lines = changes(a, b)
        assert lines
        assert "sk-" not in " ".join(lines)


async def test_what_a_program_started_ends_with_it() -> None:
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 300 & echo $!; wait", stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    child = int(await process.stdout.readline())
    await ended(process)
    await ended(process)  # it may have ended by itself
    async with asyncio.timeout(30):
        while alive(child):
            await asyncio.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
