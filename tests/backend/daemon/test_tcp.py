"""The API over TCP: only with a token, as far as its role goes, under the names it is known by."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from backend.api.app import create_app
from backend.api.gate import over_tcp
from backend.client.door import url_door
from backend.client.http import HttpClient
from backend.daemon import _Server
from backend.domain.access import NewToken, Role
from backend.domain.errors import Denied, Invalid, PdError, Refused, Unknown
from backend.listening import Tcp, config, listen_tcp, parse_tcp, renew
from backend.services.backend import Backend
from tests.backend.api.conftest import backend
from tests.backend.api.test_api import DOCUMENT

__all__ = ["backend"]


@asynccontextmanager
async def serving(backend: Backend, tcp: Tcp) -> AsyncIterator[tuple[str, Any]]:
    """The URL of the backend on a port of the machine's choice, and its TLS context."""
    server = _Server(config(over_tcp(create_app(backend, "0"), tcp.hosts()), tcp))
    sock = listen_tcp(tcp)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    scheme = "https" if tcp.certificate else "http"
    try:
        yield f"{scheme}://127.0.0.1:{sock.getsockname()[1]}", server.config.ssl
    finally:
        backend.bus.close()
        server.should_exit = True
        await task


async def token(backend: Backend, role: Role, name: str = "ci", days: float | None = None) -> str:
    made = await backend.tokens.add(NewToken(name=name, role=role, days=days), "me")
    assert made.token is not None
    return made.token


def client(url: str, text: str, **more: str) -> HttpClient:
    door = url_door({"PDTUI_URL": url, "PDTUI_TOKEN": text, **more})
    assert door is not None
    return HttpClient(door)


async def test_each_role_may_do_what_it_says(backend: Backend) -> None:
    async with serving(backend, Tcp("127.0.0.1", 0)) as (url, _):
        reader = client(url, await token(backend, "read", "r"))
        operator = client(url, await token(backend, "operate", "o"))
        admin = client(url, await token(backend, "admin", "a"))
        document = {**DOCUMENT, "spec": {**DOCUMENT["spec"], "env": {"HF_TOKEN": "hf_abcdef"}}}
        try:
            assert (await reader.health()).read_only
            with pytest.raises(Denied) as caught:
                await reader.apply(document)
            assert caught.value.problem.values == {"needs": "operate", "has": "read"}
            await operator.apply(document)
            assert (await operator.deployment("chat"))["spec"]["env"] == {"HF_TOKEN": "hf_abcdef"}
            seen = [await reader.deployment("chat"), (await reader.history("chat"))[0].document]
            assert [d["spec"]["env"] for d in seen] == [{"HF_TOKEN": "*" * 8}] * 2
            assert (await reader.check(document))["verdicts"] is not None
            with pytest.raises(Denied):
                await operator.tokens()
            assert {t.name for t in await admin.tokens()} == {"r", "o", "a"}
            with pytest.raises(Denied) as caught:
                await admin.hand_over("9")
            assert caught.value.problem.rule == "daemon.handover"
            saved = [e for e in await reader.events("chat") if e.kind == "saved"]
            assert [e.actor for e in saved] == ["token o"]
        finally:
            for one in (reader, operator, admin):
                await one.aclose()


async def test_only_an_admin_lets_the_backend_fetch_a_value(backend: Backend) -> None:
    spec = {**DOCUMENT["spec"], "env": {"HF_TOKEN": {"from_command": ["cat", "/etc/shadow"]}}}
    document = {**DOCUMENT, "spec": spec}
    async with serving(backend, Tcp("127.0.0.1", 0)) as (url, _):
        operator = client(url, await token(backend, "operate", "o"))
        admin = client(url, await token(backend, "admin", "a"))
        try:
            with pytest.raises(Denied) as caught:
                await operator.apply(document)
            assert caught.value.problem.rule == "access.reference"
            await admin.apply(document)
            edited = {**document, "spec": {**spec, "parameters": []}}
            await operator.apply(edited)  # what was let through once stays
            assert (await operator.deployment("chat"))["spec"]["env"] == spec["env"]
        finally:
            await operator.aclose()
            await admin.aclose()


async def test_a_token_holds_until_it_is_taken_back_or_runs_out(backend: Backend) -> None:
    async with serving(backend, Tcp("127.0.0.1", 0)) as (url, _):
        text = await token(backend, "read")
        late = await token(backend, "read", "late", days=1e-9)
        stored = [t.model_dump_json() for t in backend.store.tokens.values()]
        assert not any(text in s or late in s for s in stored)
        holder = client(url, text)
        await holder.health()
        await backend.tokens.drop("ci", "me")
        for who in (holder, client(url, late), client(url, "pdtui_nonsense")):
            with pytest.raises(Unknown) as caught:
                await who.health()
            assert caught.value.problem.rule == "access.token"
            await who.aclose()
        names = [e.message for e in await backend.store.events() if e.kind.startswith("token")]
        assert names[0] == "the token ci is given out, role read"
        assert not any(text in n for n in names)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Basic YTpi"}, 401),
        ({"authorization": "Bearer x"}, 401),
        ({"host": "evil.example", "authorization": "T"}, 403),
        ({"origin": "https://127.0.0.1", "authorization": "T"}, 403),
        ({"host": "known.example:99", "authorization": "T"}, 200),
        ({"host": "KNOWN.example", "authorization": "T"}, 200),
        ({"x-pdtui-actor": "root", "authorization": "T"}, 200),
    ],
)
async def test_who_is_answered(backend: Backend, headers: dict[str, str], status: int) -> None:
    text = await token(backend, "read")
    sent = {k: f"Bearer {text}" if v == "T" else v for k, v in headers.items()}
    tcp = Tcp("127.0.0.1", 0, names=("known.example",))
    async with serving(backend, tcp) as (url, _), httpx.AsyncClient(trust_env=False) as http:
        answer = await http.get(f"{url}/v1/groups", headers=sent)
        assert answer.status_code == status
        if status == 401:
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["problems"][0]["rule"] == "access.token"
        foreign = status == 403
        alive = await http.get(f"{url}/healthz", headers=sent if foreign else {})
        assert alive.status_code == (403 if foreign else 204)
        assert alive.content == b"" or foreign


def certificate(folder: Path, name: str) -> Tcp:
    """Files of a fresh certificate for 127.0.0.1, in the place of those that are there."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.DNSName(name)])
    cert = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    pkcs8 = serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(cert.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, pkcs8, plain))
    return Tcp("127.0.0.1", 0, folder / "cert.pem", folder / "key.pem")


async def test_tls_with_a_certificate_that_is_renewed(backend: Backend, tmp_path: Path) -> None:
    tcp = certificate(tmp_path, "first.example")
    text = await token(backend, "read")
    async with serving(backend, tcp) as (url, context):
        url = url.replace("127.0.0.1", "localhost")
        trusting = client(url, text, PDTUI_CA=str(tmp_path / "cert.pem"))
        assert (await trusting.health()).api == "v1"
        await trusting.aclose()
        stranger = client(url, text)
        with pytest.raises(PdError, match="certificate"):
            await stranger.health()
        await stranger.aclose()
        hurry = asyncio.Event()
        renewing = asyncio.create_task(renew(tcp, context, hurry))
        await asyncio.sleep(0)
        certificate(tmp_path, "second.example")
        hurry.set()
        port = int(url.rsplit(":", 1)[1])
        async with asyncio.timeout(30):
            while await subject(port, tmp_path / "cert.pem") != "second.example":
                await asyncio.sleep(0.05)
        renewing.cancel()


async def subject(port: int, trusted: Path) -> str:
    context = ssl.create_default_context(cafile=str(trusted))
    context.check_hostname = False
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except ssl.SSLError:
        return ""  # still the earlier one
    found = writer.get_extra_info("peercert")["subject"][0][0][1]
    writer.close()
    return str(found)


@pytest.mark.parametrize(
    ("text", "more", "rule"),
    [
        ("nonsense", {}, "daemon.listen"),
        ("127.0.0.1:99999", {}, "daemon.listen"),
        ("0.0.0.0:8470", {}, "daemon.no_tls"),
        ("[::]:8470", {}, "daemon.no_tls"),
        ("console.example:8470", {}, "daemon.no_tls"),
        ("127.0.0.1:8470", {"certificate": Path("/c")}, "daemon.tls"),
    ],
)
def test_where_it_does_not_listen(text: str, more: dict[str, Any], rule: str) -> None:
    with pytest.raises(PdError) as caught:
        parse_tcp(text, **more)
    assert caught.value.problem.rule == rule


def test_where_it_listens(tmp_path: Path) -> None:
    assert parse_tcp("127.0.0.1:0").loopback
    assert parse_tcp("[::1]:8470").loopback
    assert parse_tcp("0.0.0.0:8470", plain=True).plain
    with pytest.raises(Refused, match="cannot be listened on"):
        listen_tcp(Tcp("192.0.2.1", 0))  # an address that no machine has
    (tmp_path / "c").write_text("no certificate")
    bad = Tcp("127.0.0.1", 0, tmp_path / "c", tmp_path / "c")
    with pytest.raises(Invalid, match="cannot be used"):
        config(over_tcp(lambda *_: None, ()), bad)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("env", "rule"),
    [
        ({"PDTUI_URL": "ftp://x"}, "client.url"),
        ({"PDTUI_URL": "http://x/path", "PDTUI_TOKEN": "t"}, "client.url"),
        ({"PDTUI_URL": "http://x"}, "client.token"),
        ({"PDTUI_URL": "http://x", "PDTUI_TOKEN": "a\nb"}, "client.token"),
        ({"PDTUI_URL": "http://x", "PDTUI_TOKEN_FILE": "/nowhere"}, "client.token"),
        ({"PDTUI_URL": "https://x", "PDTUI_TOKEN": "t", "PDTUI_CA": "/nowhere"}, "client.ca"),
    ],
)
def test_what_the_client_is_told_wrongly(env: dict[str, str], rule: str) -> None:
    with pytest.raises(Invalid) as caught:
        url_door(env)
    assert caught.value.problem.rule == rule


def test_the_clients_token_is_in_no_text_of_it(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("pdtui_abcdef\n")
    door = url_door({"PDTUI_URL": "http://x:1/", "PDTUI_TOKEN_FILE": str(tmp_path / "t")})
    assert door is not None
    assert door.headers["authorization"] == "Bearer pdtui_abcdef"
    assert "abcdef" not in repr(door)
    assert url_door({}) is None
