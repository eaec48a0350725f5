"""Reading logs by an offset that counts through rotations."""

from __future__ import annotations

import asyncio

import pytest

from backend.domain.errors import NotFound
from tests.backend.runtime.conftest import Rig


async def test_the_end_and_then_what_follows(rig: Rig) -> None:
    await rig.start("echo one; echo two; while [ ! -e go ]; do sleep 0.02; done; printf 'thr\\303'")
    await rig.says("two")
    tail = await rig.runtime.log(rig.host, "a", tail_bytes=4)
    assert (tail.text, tail.offset, tail.truncated) == ("two\n", 8, True)
    again = await rig.runtime.log(rig.host, "a", offset=8)
    assert (again.text, again.offset, again.truncated) == ("", 8, False)
    (rig.folder() / "go").write_text("")
    await rig.until("exited")
    rest = await rig.runtime.log(rig.host, "a", offset=8)
    assert (rest.text, rest.offset) == ("thr", 11)
    with (rig.folder() / "g1" / "log").open("ab") as log:
        log.write(b"\xa9e\xff\n")
    more = await rig.runtime.log(rig.host, "a", offset=rest.offset)
    assert (more.text, more.offset) == ("ée\ufffd\n", 16)
    part = await rig.runtime.log(rig.host, "a", offset=0, limit=3)
    assert (part.text, part.offset) == ("one", 3)


async def test_following_through_rotation_misses_nothing(rig: Rig) -> None:
    script = (
        "i=0; while [ $i -lt 900 ]; do echo line-$i; i=$((i+1)); if [ $((i % 300)) -eq 0 ]; then "
        "while [ -s g1/log ] || [ -e g1/rotating ]; do sleep 0.02; done; fi; done; "
        "echo end; exec sleep 60"
    )
    await rig.start(script)
    offset, text = 0, ""
    while "end\n" not in text:
        chunk = await rig.runtime.log(rig.host, "a", offset=offset)
        assert not chunk.truncated
        text, offset = text + chunk.text, chunk.offset
        await asyncio.sleep(0)
    assert text.splitlines() == [*(f"line-{i}" for i in range(900)), "end"]
    assert (rig.folder() / "g1" / "base").exists(), "it was never rotated"
    assert (rig.folder() / "g1" / "log").stat().st_size < offset
    first = await rig.runtime.log(rig.host, "a", offset=0)
    assert first.truncated
    assert first.text.endswith("end\n")


async def test_no_log(rig: Rig) -> None:
    with pytest.raises(NotFound, match="a has no log on node1"):
        await rig.runtime.log(rig.host, "a")
