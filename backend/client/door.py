"""How a backend is reached: over its Unix socket, or over TCP with a token."""

from __future__ import annotations

import getpass
import os
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from backend.domain.errors import Invalid

PREFIX = "/v1"
CONNECT_S = 5.0
ANY = "*"
"""In place of an entity tag: whatever is there."""
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Door:
    """Where a backend answers. `name` is the address as a person knows it."""

    name: str
    base_url: str
    remedy: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    socket: Path | None = None
    verify: ssl.SSLContext | bool = True

    def client(self, call_s: float) -> httpx.AsyncClient:
        """The HTTP client; `call_s` is how many seconds an answer may take."""
        transport = (
            httpx.AsyncHTTPTransport(uds=str(self.socket))
            if self.socket is not None
            else httpx.AsyncHTTPTransport(verify=self.verify)
        )
        return httpx.AsyncClient(
            transport=transport,
            base_url=self.base_url + PREFIX,
            timeout=httpx.Timeout(call_s, connect=CONNECT_S),
            headers=dict(self.headers),
            trust_env=False,
        )

    def inside(self, address: str) -> str:
        """The address of a next page, as this client's requests are written."""
        return address.partition(PREFIX)[2]


def socket_door(path: Path) -> Door:
    """The backend on a Unix socket of ours."""
    return Door(
        name=str(path),
        base_url="http://pdtui",
        remedy="Start `pdtui`, or `pdtui daemon` to have one without a screen.",
        headers={"x-pdtui-actor": quote(_user())},
        socket=path,
    )


def url_door(env: Mapping[str, str]) -> Door | None:
    """The backend that `PDTUI_URL` names, with the token of `PDTUI_TOKEN` (or of the file that
    `PDTUI_TOKEN_FILE` names); `PDTUI_CA` is a file of certificates to trust beside the system's.
    None while PDTUI_URL is not set.

    Raises Invalid (`client.url`, `client.token`, `client.ca`).
    """
    url = env.get("PDTUI_URL", "").strip().rstrip("/")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path:
        raise Invalid.of(
            "client.url",
            f"PDTUI_URL is {url!r}, which is no address of a backend.",
            values={"PDTUI_URL": url},
            remedy="Write https://HOST:PORT, or unset it to use this machine's own backend.",
        )
    return Door(
        name=url,
        base_url=url,
        remedy="Check PDTUI_URL, and that `pdtui daemon --listen` runs there.",
        headers={"authorization": f"Bearer {_token(env)}"},
        verify=_trust(env),
    )


def _token(env: Mapping[str, str]) -> str:
    text = env.get("PDTUI_TOKEN", "")
    file = env.get("PDTUI_TOKEN_FILE", "")
    if not text and file:
        try:
            text = Path(file).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid.of(
                "client.token",
                f"PDTUI_TOKEN_FILE {file} cannot be read: {error}.",
                values={"PDTUI_TOKEN_FILE": file},
                remedy="Check the path and its permissions.",
            ) from None
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable():
        raise Invalid.of(
            "client.token",
            "PDTUI_URL is set, but no usable PDTUI_TOKEN: over TCP every request carries a token.",
            remedy="Set PDTUI_TOKEN or PDTUI_TOKEN_FILE; `pdtui tokens add NAME` on the backend's "
            "machine makes one.",
        )
    return text


def _trust(env: Mapping[str, str]) -> ssl.SSLContext | bool:
    file = env.get("PDTUI_CA", "")
    if not file:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise Invalid.of(
            "client.ca",
            f"PDTUI_CA {file} holds no certificates that can be read: {error}.",
            values={"PDTUI_CA": file},
            remedy="Name a PEM file.",
        ) from None
    return context


def headers_for(method: str, expect: str | None) -> dict[str, str]:
    """What a write carries: its own key, and what it is based on: an entity tag, `*`, or empty for
    what is to be created. None for a write that is based on nothing."""
    if method not in WRITES:
        return {}
    found: dict[str, Any] = {"Idempotency-Key": str(uuid.uuid4())}
    if expect == "":
        found["If-None-Match"] = "*"
    elif expect is not None:
        found["If-Match"] = expect
    return found


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
