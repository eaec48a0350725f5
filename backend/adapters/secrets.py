"""Fetching values that a document only refers to, on the backend's machine, at each start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import Mapping
from pathlib import Path

from backend.domain.errors import Refused
from backend.domain.references import decoded, is_reference, said
from backend.redaction import PROCESS, secret_values

MOST_BYTES = 64 * 1024
COMMAND_S = 15.0


async def resolved(env: Mapping[str, str], whose: str) -> dict[str, str]:
    """The environment with every reference replaced by its value, which is hidden from then on in
    all that this process writes. Raises Refused (`secret.unresolved`) naming the variable."""
    names = [name for name, value in env.items() if is_reference(value)]
    values = await asyncio.gather(*(_value(name, env[name], whose) for name in names))
    found = {**env, **dict(zip(names, values, strict=True))}
    PROCESS.remember([*values, *secret_values(env)])
    return found


async def _value(name: str, reference: str, whose: str) -> str:
    body = decoded(reference)
    assert isinstance(body, dict)
    ((kind, what),) = body.items()
    try:
        if kind == "from_env":
            text = _variable(what)
        elif kind == "from_file":
            text = await asyncio.to_thread(_file, what)
        else:
            text = await _command(what)
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise ValueError("it is empty")
        if "\0" in text:
            raise ValueError("it holds a NUL character")
    except (OSError, ValueError, TimeoutError) as error:
        why = f"no answer within {COMMAND_S:.0f} s" if isinstance(error, TimeoutError) else error
        raise Refused.of(
            "secret.unresolved",
            f"{whose} cannot start: {name} is {said(reference)}, and on the backend's machine "
            f"that gives no value: {why}.",
            path=f"env.{name}",
            values={"name": name, "reference": body, "instance": whose},
            remedy="Provide it there; the start is tried again.",
        ) from None
    return text


def _variable(name: str) -> str:
    if name not in os.environ:
        raise ValueError("the variable is not set for the backend")
    return os.environ[name]


def _file(path: str) -> str:
    # not waited for: a pipe that nobody writes to would hold the thread for ever
    file = os.open(Path(path).expanduser(), os.O_RDONLY | os.O_NONBLOCK)
    with open(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("it is no regular file")
        raw = opened.read(MOST_BYTES + 1)
    return _text(raw)


async def _command(argv: list[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(COMMAND_S):
            raw = await process.stdout.read(MOST_BYTES + 1)
            while len(raw) <= MOST_BYTES and (more := await process.stdout.read(MOST_BYTES)):
                raw += more
            code = await process.wait() if len(raw) <= MOST_BYTES else 0
    finally:
        await ended(process)
    if code:
        raise ValueError(f"it ended with exit code {code}")
    return _text(raw)


async def ended(process: asyncio.subprocess.Process) -> None:
    """End a program that leads its own process group, with all that it started, if it runs yet."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _text(raw: bytes) -> str:
    if len(raw) > MOST_BYTES:
        raise ValueError(f"it is longer than {MOST_BYTES} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
