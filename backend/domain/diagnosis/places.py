"""Whose a port or an address of a log line is: bands, holders and hosts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from backend.domain.diagnosis.model import Finding
from backend.domain.diagnosis.table import BY_ID
from backend.domain.group import Instance
from backend.domain.instance import Band
from backend.domain.words import Words, both

_PORT = re.compile(r"(?:: ?|[Pp]ort[ =:'\[(]{1,3})(\d{4,5})\b")
_BRIDGES = ("172.17.", "172.18.", "10.244.")
"""Where Docker's and flannel's own networks lie unless somebody moved them."""
_HERE = ("localhost", "0.0.0.0", "[::]", "*")  # noqa: S104
_TOPICS = ("ports", "transfer", "network", "router", "pairing")


@dataclass(frozen=True)
class Seat:
    """One instance with its bands, for looking ports up."""

    instance: str
    role: str
    host: str
    address: str
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True)
class Scene:
    """What is known around the instance whose log is read.

    `addresses` are the hosts' addresses, all interfaces, by address; `listening` the ports that
    something listens on at the instance's own host.
    """

    me: str = ""
    host: str = ""
    seats: tuple[Seat, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    listening: frozenset[int] = frozenset()

    def of(self, instance: str) -> Seat | None:
        """That instance's seat."""
        return next((s for s in self.seats if s.instance == instance), None)

    def holder(self, port: int, address: str = "") -> tuple[Seat, Band] | None:
        """Who was given a port: at that address, else on this host."""
        host = self.addresses.get(address, "") if address else ""
        local = not address or address in _HERE or address.startswith("127.")
        places = {host} if host else {self.host} if local else set[str]()
        for seat in self.seats:
            if seat.host not in places and (not address or seat.address != address):
                continue
            for band in seat.bands:
                if port in band.ports:
                    return seat, band
        return None


def seat_of(instance: Instance) -> Seat:
    """An instance as stored, for looking ports up."""
    return Seat(instance.id, instance.role, instance.host, instance.address, instance.bands)


def placed(finding: Finding, scene: Scene) -> Finding:
    """The finding with notes on whose its ports and addresses are."""
    notes = tuple(_notes(finding, scene))
    return finding.model_copy(update={"notes": (*finding.notes, *notes)}) if notes else finding


def target(finding: Finding, scene: Scene) -> Seat | None:
    """The other instance that a finding's address and port are, if they are one's."""
    port = finding.values.get("port", "")
    if not port.isdecimal():
        return None
    found = scene.holder(
        int(port), finding.values.get("addr", "") or finding.values.get("host", "")
    )
    return found[0] if found and found[0].instance != scene.me else None


def _notes(finding: Finding, scene: Scene) -> Iterator[Words]:
    rule = BY_ID.get(finding.rule)
    topic = rule.topic if rule else "ports" if "address already in use" in finding.text else ""
    if topic not in _TOPICS or not scene.seats:
        return
    address = finding.values.get("addr", "") or finding.values.get("host", "")
    ports = list(_ports(finding))
    for port in ports[:3]:
        yield from _port(port, address, topic, scene)
    if not ports and rule is not None and rule.band:
        mine = scene.of(scene.me)
        band = next((b for b in mine.bands if b.name == rule.band), None) if mine else None
        if band is not None:
            yield from _port(band.base, "", topic, scene)
    if address:
        yield from _address(address, scene)


def _ports(finding: Finding) -> Iterable[int]:
    named = finding.values.get("port", "")
    found = [named] if named.isdecimal() else _PORT.findall(finding.text)
    return dict.fromkeys(int(p) for p in found if 1024 <= int(p) <= 65535)


def _port(port: int, address: str, topic: str, scene: Scene) -> Iterator[Words]:
    found = scene.holder(port, address)
    if found is None:
        if topic == "ports" and scene.host:
            yield both(
                "Port {port} is in no band that was given out on {host}: a program outside pdtui, "
                "or one that chose the port by itself, holds it.",
                "端口 {port} 不属于 {host} 上分配的任何端口段："
                "由 pdtui 之外的程序或自选端口的程序占用。",
                port=port,
                host=scene.host,
            )
        return
    seat, band = found
    values = {"port": port, "band": band.name, "who": seat.instance, "host": seat.host}
    if seat.instance != scene.me:
        yield both(
            "Port {port} is the {band} of {who} on {host}.",
            "端口 {port} 是 {host} 上 {who} 的 {band}。",
            **values,
        )
        return
    yield both(
        "Port {port} is this instance's own {band}.",
        "端口 {port} 是该实例自己的 {band}。",
        **values,
    )
    if topic == "ports" and port in scene.listening:
        yield both(
            "Something listens on it at {host} now: a process left over from an earlier start, or "
            "a program outside pdtui. `pdtui doctor {host}` looks for it.",
            "{host} 上现在有进程在监听：上次启动遗留的进程，或 pdtui 之外的程序。"
            "可用 `pdtui doctor {host}` 查找。",
            **values,
        )


def _address(address: str, scene: Scene) -> Iterator[Words]:
    known = scene.addresses.get(address)
    if known is None and address[:1].isdecimal() and not address.startswith("127."):
        bridge = address.startswith(_BRIDGES)
        yield both(
            "{address} is no address of any host of the inventory{bridge}.",
            "{address} 不是清单中任何主机的地址{bridge_zh}。",
            address=address,
            bridge="; it looks like a container bridge's" if bridge else "",
            bridge_zh="，看起来是容器网桥的地址" if bridge else "",
        )
    elif known is not None and known != scene.host:
        yield both(
            "{address} is the host {host}.",
            "{address} 是主机 {host}。",
            address=address,
            host=known,
        )
