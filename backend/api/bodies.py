"""Reading a request's body: bounded in size, and JSON without what JSON leaves open."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from backend.domain.errors import Invalid, TooLarge, WrongType

MOST_BYTES = 4 << 20
"""As for files: a document is far smaller."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """The whole body. Raises TooLarge before more than `MOST_BYTES` are held."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > MOST_BYTES:
        raise _too_large(int(declared))
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break  # the caller went away: nobody hears the answer
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MOST_BYTES:
            raise _too_large(size)
        chunks.append(chunk)
        if not message.get("more_body"):
            break
    return b"".join(chunks)


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read already, then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def judge_json(headers: Headers, body: bytes) -> None:
    """Raises WrongType for a body of another type than JSON; Invalid (`request.json`) for a key
    that is written twice, NaN and its like, half characters, and what is no JSON."""
    if not body:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise WrongType.of(
            "request.type",
            f"a body of type {kind[:80]!r} is not read here.",
            values={"type": kind[:80]},
            remedy="Send JSON, with Content-Type: application/json.",
        )
    try:
        found = json.loads(body, object_pairs_hook=_once, parse_constant=_no_number)
        if _SURROGATE.search(body):  # whole pairs pass
            json.dumps(found, ensure_ascii=False).encode()
    except Invalid:
        raise
    except UnicodeError:
        raise _unread("it is not UTF-8 text, or holds half of a character") from None
    except RecursionError:
        raise _unread("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _unread(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise _unread(str(error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise _unread(f"the key {twice!r} is written twice in one object")
    return found


def _no_number(name: str) -> NoReturn:
    raise _unread(f"{name} is no number in JSON")


def _unread(why: str) -> Invalid:
    return Invalid.of(
        "request.json",
        f"the body is not read: {why}.",
        values={"why": why},
        remedy="Correct the JSON.",
    )


def _too_large(size: int) -> TooLarge:
    return TooLarge.of(
        "request.too_large",
        f"a body of {size} bytes or more is not read; the most is {MOST_BYTES}.",
        values={"found": size, "most": MOST_BYTES},
        remedy="Send less: put long content into files on the hosts.",
    )
