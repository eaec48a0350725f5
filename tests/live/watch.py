"""What must never be seen on the hosts, however briefly: mixed revisions, doubles, double booking.

It looks past the backend: instance directories, processes, and the routers' own answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

EVERY_S = 0.1
READ_S = 2.0


@dataclass(frozen=True)
class Found:
    """One instance directory as it was at one moment; `alive` are its living leaders: generation,
    pid and start time."""

    host: str
    instance: str
    owner: str
    accelerators: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()
    group: str = ""
    role: str = ""
    revision: str = ""
    generation: int = 0
    address: str = ""
    port: int = 0
    told: tuple[str, ...] = ()
    alive: tuple[tuple[int, int, int], ...] = ()

    @property
    def url(self) -> str:
        """Base URL of its HTTP server."""
        return f"http://{self.address}:{self.port}"

    @property
    def kind(self) -> tuple[str, str]:
        """What all members of one router share."""
        return self.group, self.revision


def starts_at(pid: int) -> int | None:
    """Clock ticks after boot at which the living process of that number started, or None."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def pairs(text: str) -> dict[str, str]:
    """Lines `key=value` as a mapping."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def look(folder: Path) -> Found | None:
    """One instance directory, or None when it is going away."""
    try:
        claim = pairs((folder / "claim").read_text())
        told = json.loads((folder / "spec.json").read_text()) if _started(folder) else {}
    except (OSError, ValueError):
        return None
    launch = told.get("launch", {})
    return Found(
        host=folder.parts[folder.parts.index("hosts") + 1],
        instance=folder.name,
        owner=claim.get("owner", ""),
        accelerators=_numbers(claim.get("accelerators", "")),
        ports=_numbers(claim.get("ports", "")),
        group=told.get("group", ""),
        role=told.get("role", ""),
        revision=told.get("revision", ""),
        generation=int(told.get("generation", 0)),
        address=launch.get("address", ""),
        port=int(launch.get("port", 0)),
        told=tuple(launch.get("argv", ())),
        alive=tuple(_leaders(folder)),
    )


def _started(folder: Path) -> bool:
    return (folder / "spec.json").exists()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.isdigit())


def _leaders(folder: Path) -> Iterable[tuple[int, int, int]]:
    for run in folder.glob("g*/run"):
        try:
            facts = pairs(run.read_text())
            pid, start = int(facts["pid"]), int(facts["start"])
        except (OSError, ValueError, KeyError):
            continue
        if starts_at(pid) == start:
            yield int(run.parent.name[1:]), pid, start


def both(before: Sequence[Found], after: Sequence[Found]) -> list[Found]:
    """What was the same at both moments, and so at every moment between: pids, claim, launch."""
    later = {(f.host, f.instance): f for f in after}
    kept = []
    for one in before:
        two = later.get((one.host, one.instance))
        if two is None or two.owner != one.owner or two.ports != one.ports:
            continue
        lasting = tuple(a for a in one.alive if a in two.alive)
        same = (one.generation, one.revision) == (two.generation, two.revision)
        last = (
            two if same else Found(one.host, one.instance, one.owner, two.accelerators, two.ports)
        )
        kept.append(replace(last, alive=lasting))
    return kept


def doubles(found: Sequence[Found]) -> list[str]:
    """Two living generations of one instance, and what two instances of one host both hold."""
    wrong = [
        f"{f.instance} on {f.host} lives {len(f.alive)} times: {f.alive}"
        for f in found
        if len(f.alive) > 1
    ]
    held: dict[tuple[str, str, int], Found] = {}
    for f in found:
        things = [("accelerator", a) for a in f.accelerators] + [("port", p) for p in f.ports]
        for what, number in things:
            other = held.setdefault((f.host, what, number), f)
            if other is not f:
                wrong.append(f"{what} {number} of {f.host}: {other.instance} and {f.instance}")
    return wrong


def mixed(router: Found, listed: Iterable[str], found: Sequence[Found]) -> list[str]:
    """Members of another group or revision that a router lists or was started with."""
    living = {f.url: f for f in found if f.alive and f.role in ("prefill", "decode")}
    known = [living[url] for url in dict.fromkeys(listed) if url in living]
    return [
        f"{router.instance} ({router.kind}) holds {m.instance} ({m.kind}) at {m.url}"
        for m in known
        if m.kind != router.kind
    ]


@dataclass
class Watch:
    """Looks at everything under `root` until it is stopped; `problems` is what it saw."""

    root: Path
    problems: list[str] = field(default_factory=list)
    looks: int = 0
    registries: int = 0
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin looking."""
        self._task = asyncio.create_task(self._run(), name="never mixed")

    async def stop(self) -> None:
        """End looking. Raises AssertionError with everything that was wrong."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.check()

    def check(self) -> None:
        """Raise AssertionError when something was wrong, or when the watch itself ended."""
        assert not self.problems, "\n".join(self.problems)
        if self._task is not None and self._task.done() and not self._task.cancelled():
            raise AssertionError("the watch ended") from self._task.exception()

    def see(self) -> list[Found]:
        """Every instance directory now."""
        folders = self.root.glob("sandbox/hosts/*/*/instances/[!.]*")
        return [f for f in map(look, sorted(folders)) if f is not None]

    async def _run(self) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=READ_S) as http:
            before = self.see()
            while True:
                routers = [f for f in before if f.role == "router" and f.alive]
                lists = await asyncio.gather(*(self._listed(http, r) for r in routers))
                after = self.see()
                lasting = both(before, after)
                wrong = doubles(lasting)
                for router, listed in zip(routers, lists, strict=True):
                    if any(f.instance == router.instance and f.alive for f in lasting):
                        wrong += mixed(router, known_to(router, listed), lasting)
                self.problems += [w for w in wrong if w not in self.problems]
                self.looks += 1
                before = after
                await asyncio.sleep(EVERY_S)

    async def _listed(self, http: httpx.AsyncClient, router: Found) -> list[str] | None:
        """The member URLs of a router's registry; None while it does not say."""
        try:
            answer = await http.get(f"{router.url}/workers")
            rows = answer.raise_for_status().json()["workers"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return None
        self.registries += 1
        return [str(r["url"]) for r in rows if isinstance(r, dict) and "url" in r]


def known_to(router: Found, listed: Sequence[str] | None) -> Sequence[str]:
    """The members that a router sends to: those it lists, or was started with where it does not
    say. vllm-router with --enable-igw asks for members at its start and then takes none of them."""
    if listed is not None:
        return listed
    return [] if "--enable-igw" in router.told else urls(router.told)


def urls(argv: Sequence[str]) -> list[str]:
    """The base URLs among a static router's words."""
    return [w.rstrip("/") for word in argv for w in word.split("=")[-1:] if w.startswith("http://")]
