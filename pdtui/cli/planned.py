"""Documents of files beside what is saved: one item each, whatever is wrong with the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from backend.domain.errors import Invalid, NotFound, PdError, Problem
from backend.domain.kinds import KINDS, Kind, kind_of
from pdtui.cli.common import complain_of, told
from pdtui.cli.files import Part, read_parts
from pdtui.cli.output import BAD, DOUBTFUL, GOOD, paint
from pdtui.i18n import tr
from pdtui.state.secrets import restored

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.planning import Plan

AT_ONCE = 8
"""Questions to the backend under way at a time."""
ELSEWHERE = ("cache.", "host.", "mode.vendor")
"""Rules that look at what other documents of the same run may bring."""
UNREADABLE, REFUSED = 2, 1
_RANK = {0: 0, 3: 1, 4: 2, 1: 3, 2: 4}


@dataclass
class Item:
    """One document on its way: its plan, and the exit code of what went wrong with it."""

    part: Part
    kind: Kind = "Deployment"
    data: dict[str, Any] = field(default_factory=dict)
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    code: int = 0
    later: bool = False
    """Whether it is judged again once the documents that it refers to are saved."""

    @property
    def name(self) -> str:
        """The document's name, or where it stands."""
        return self.part.name or self.part.at()

    @property
    def changes(self) -> bool:
        """Whether saving it changes anything."""
        return self.code == 0 and (
            self.later or (self.plan is not None and self.plan.action in ("create", "update"))
        )

    def fail(self, error: PdError) -> None:
        """Note what went wrong."""
        self.problems, self.code = error.problems, error.exit_code


def worst(codes: Iterable[int]) -> int:
    """The exit code that says the gravest: unreadable, refused, a host or a time-out, waiting."""
    return max(codes, key=lambda c: _RANK.get(c, 3), default=0)


def read_items(files: Sequence[Path], *, recursive: bool = False) -> list[Item]:
    """An item per document, those that cannot be read with their problem; in order of kinds."""
    items: list[Item] = []
    seen: dict[tuple[Kind, str], Part] = {}
    for part in read_parts(files, recursive=recursive):
        item = Item(part)
        try:
            if part.problem is not None:
                raise Invalid(part.problem)
            item.kind, item.data = kind_of(part.data), part.data
            _refuse_twice(item, seen)
        except Invalid as error:
            item.fail(error)
        items.append(item)
    return sorted(items, key=lambda i: KINDS.index(i.kind))


def _refuse_twice(item: Item, seen: dict[tuple[Kind, str], Part]) -> None:
    if not item.part.name:
        return
    first = seen.setdefault((item.kind, item.part.name), item.part)
    if first is not item.part:
        raise Invalid.of(
            "file.twice",
            tr("cli.twice", kind=item.kind, name=item.part.name, first=first.at()),
            path="metadata.name",
            values={"name": item.part.name, "first": first.at(), "second": item.part.at()},
            remedy=tr("cli.twice.remedy"),
        )


async def each(items: Iterable[Item], act: Callable[[Item], Awaitable[None]]) -> None:
    """Act on every item, some at a time; an explained error stays its item's own."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(item: Item) -> None:
        async with gate:
            try:
                await act(item)
            except PdError as error:
                item.fail(error)

    await asyncio.gather(*(one(i) for i in items))


async def plan_all(client: HttpClient, items: Sequence[Item]) -> None:
    """Ask what saving each would do. A document that is refused only for what another of the same
    run brings is judged again after that is saved."""

    async def ask(item: Item) -> None:
        item.data = await _with_secrets(client, item)
        item.plan = await client.plan(item.data)

    await each((i for i in items if i.code == 0), ask)
    brings = any(i.kind != "Deployment" and i.changes for i in items)
    for item in items:
        if item.plan is None or item.plan.action != "refused":
            continue
        refused = tuple(v for v in item.plan.verdicts if v.verdict == "refused")
        if brings and all(v.rule.startswith(ELSEWHERE) for v in refused):
            item.later = True
        else:
            item.problems, item.code = refused, REFUSED


async def _with_secrets(client: HttpClient, item: Item) -> dict[str, Any]:
    """The document with masked values put back from what is saved. Raises Invalid."""
    saved = await saved_document(client, item.kind, item.part.name)
    document, left = restored(item.data, saved)
    if left:
        raise Invalid(*(
            Problem(rule="secret.masked", path=path, message=tr("cli.masked"),
                    remedy=tr("cli.masked.remedy"))
            for path in left
        ))  # fmt: skip
    return document  # type: ignore[no-any-return]


async def saved_document(client: HttpClient, kind: Kind, name: str) -> dict[str, Any] | None:
    """What is saved under a name, as a document; None where nothing is."""
    from backend.domain.host import STORED, Host
    from backend.domain.kinds import host_document

    try:
        if kind == "Deployment":
            return await client.deployment(name)
        if kind == "CacheService":
            return await client.cache_document(name)
        entry = Host.model_validate(await client.host_entry(name), context=STORED)
        return host_document(entry).document()
    except NotFound:
        return None


_SIGNS = {"create": ("+", GOOD), "update": ("~", DOUBTFUL), "unchanged": ("=", None),
          "refused": ("!", BAD), "delete": ("-", BAD), "restart": ("~", DOUBTFUL)}  # fmt: skip


def show(items: Sequence[Item]) -> None:
    """The plan, a paragraph per document that changes, and what is doubtful about each."""
    for item in items:
        if item.code:
            continue
        plan = item.plan
        assert plan is not None
        action = "create" if item.later and plan.saved is None else plan.action
        action = "update" if item.later and action == "refused" else action
        line(action, plan.kind, plan.name, item.part.at())
        for change in plan.changes:
            typer.echo(f"    {change}")
        for effect in plan.effects:
            typer.echo(f"    {effect_text(effect.id, effect.values)}")
        if item.later:
            typer.echo(f"    {tr('cli.plan.later')}")
        doubts(item)


def line(action: str, kind: str, name: str, at: str = "") -> None:
    """One line of a plan: `+ Deployment chat  (chat.yaml:1)`."""
    sign, colour = _SIGNS[action]
    where = f"  ({at})" if at else ""
    word = tr(f"cli.plan.{action}")
    typer.echo(f"{paint(sign, colour)} {kind} {name}: {word}{where}")


def effect_text(effect: str, values: dict[str, Any]) -> str:
    """What saving sets in motion, in the language in use."""
    shown = dict(values)
    if effect == "forms":
        shown = {"counts": ", ".join(f"{n} {r}" for r, n in values.items())}
    if effect == "groups_change":
        shown = {"groups": ", ".join(values["groups"])}
    if effect == "stays_off":
        shown = {}
    return tr(f"cli.effect.{effect}", **shown)


def doubts(item: Item) -> None:
    """Warnings and what could not be verified, on stderr."""
    for v in item.plan.verdicts if item.plan else ():
        if v.verdict in ("warning", "unverified"):
            message, remedy = told(v)
            text = f"{item.part.at(v.path)}: {v.path}: {message} {remedy}".rstrip()
            typer.echo(f"{paint(v.verdict, DOUBTFUL)}: {text} [{v.rule}]", err=True)


def complain_all(items: Sequence[Item]) -> None:
    """What is wrong with each, on stderr, by file and line."""
    for item in items:
        for problem in item.problems:
            own = item.part.problem is problem
            complain_of(problem, "" if own else item.part.at(problem.path))
