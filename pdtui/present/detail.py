"""The long view of one thing: sections of keys and values, then its document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.foreign import said_as
from pdtui.present import groups, hosts, members
from pdtui.present.cells import Line, Span, Tone, line, padded
from pdtui.present.numbers import NONE, mib, since, stamp
from pdtui.present.problems import said
from pdtui.present.safe import lines
from pdtui.present.status import glyphs, host_look, level_look, member_look
from pdtui.present.telling import of_mark

if TYPE_CHECKING:
    from backend.domain.views import EventView, GroupView, HostView, MemberView


def section(title: str) -> list[Line]:
    """A blank line and a title."""
    return [(), line(Span(title, "accent"))]


def fact(name: str, value: str | Span | Line) -> Line:
    """`name` in a column of 16 cells, then the value."""
    shown = name.capitalize() if name.isupper() and len(name) > 3 else name
    label = Span(f"  {padded(shown, 16)}", "dim")
    if isinstance(value, tuple):
        return (label, *value)
    return (label, value if isinstance(value, Span) else Span(value))


def group(view: GroupView, document: str) -> list[Line]:
    """A group: its status, endpoint, marks, and the stored document (YAML text)."""
    out: list[Line] = [
        line(Span(view.name, "strong")),
        fact(tr("col.status"), groups.headline(view)),
        fact(tr("col.mode"), view.mode or word("mode", "none")),
        fact(tr("col.engine"), view.engine),
        fact(tr("col.model"), view.model),
        fact(tr("detail.version"), f"{view.version}"),
        fact(tr("detail.revision"), view.revision or NONE),
        fact(tr("detail.membership"), word("membership", view.membership)),
        fact(tr("group.policies"), said_as(view.policies) or NONE),
    ]
    if view.endpoint:
        out.append(fact(tr("group.endpoint"), Span(view.endpoint.url, "accent")))
        out.append(fact(tr("group.request"), view.endpoint.curl))
    if view.marks:
        out += section(tr("detail.marks"))
        for mark in view.marks:
            out.append(
                fact(
                    word("mark", mark.id),
                    Span(of_mark(mark), level_look(mark.level).tone),
                )
            )
    if view.changes:
        out += section(tr("detail.changes"))
        out += changes(view)
    out += section(tr("detail.document"))
    out += [line(Span(f"  {text}")) for text in lines(document.rstrip("\n"))]
    return out


def changes(view: GroupView) -> list[Line]:
    """The lines by which the document differs from what runs; added and removed ones toned."""
    return [change(text) for text in view.changes]


def change(text: str) -> Line:
    """One difference: what was in red, what is to be in green."""
    place, colon, rest = text.partition(": ")
    if not colon:
        return line(Span(f"  {text}"))
    head = Span(f"  {place}{tr('colon')}", "dim")
    old, arrow, new = rest.partition(" -> ")
    if arrow:
        return line(head, Span(old, "bad"), Span(f" {glyphs().arrow} ", "off"), Span(new, "ok"))
    whole = said_as(text)
    tone: Tone = "ok" if rest.startswith("added") else "bad"
    return line(head, Span(whole.removeprefix(place).lstrip(":： "), tone))


def member(view: MemberView, now: float) -> list[Line]:
    """One member or router: where it runs and what it holds."""
    out = [
        line(Span(view.id, "strong")),
        fact(tr("col.state"), member_look(view).span()),
        fact(tr("detail.role"), word("role", view.role)),
        fact(tr("col.host"), view.host),
        fact(tr("col.accelerators"), members.accelerators(view)),
        fact(tr("detail.address"), f"http://{view.address}:{view.port}" if view.port else NONE),
        fact(tr("detail.generation"), str(view.generation)),
        fact(tr("detail.revision"), _revision(view)),
        fact(tr("detail.since"), f"{stamp(view.since)} ({since(now, view.since)})"),
        fact(tr("col.pid"), str(view.pid or NONE)),
        fact(tr("detail.failures"), str(view.failures)),
        fact(tr("col.in_router"), members.in_router(view)),
        fact(tr("col.note"), members.note(view, now)),
    ]
    if view.bands:
        out += section(tr("detail.bands"))
        out += [fact(b.name, f"{b.base}-{b.base + b.count - 1}") for b in view.bands]
    return out


def host(view: HostView, now: float) -> list[Line]:
    """One host, its accelerators and who holds each."""
    first, last = view.port_range
    out = [
        line(Span(view.name, "strong")),
        fact(tr("col.state"), host_look(view).span()),
        fact(tr("detail.address"), hosts.address(view)),
        fact(tr("col.runtime"), view.runtime),
        fact(tr("col.ports"), tr("detail.ports", first=first, last=last, used=view.ports_used)),
        fact(tr("col.seen"), f"{stamp(view.seen)} ({since(now, view.seen)})"),
        fact(tr("detail.labels"), _labels(view.labels)),
    ]
    if view.note:
        out.append(fact(tr("col.note"), Span(said_as(view.note), host_look(view).tone)))
    if view.accelerators:
        out += section(tr("detail.accelerators"))
    for a in view.accelerators:
        mark = glyphs().full if a.held_by else glyphs().empty
        held = Span(a.held_by, "text") if a.held_by else Span(tr("host.nobody"), "dim")
        label = Span(f"  {mark} {a.index:<3}", "accent" if a.held_by else "off")
        out.append((label, Span(f"{a.type:<12} {mib(a.memory_mib):>7}  ", "dim"), held))
    return out


def event(view: EventView) -> list[Line]:
    """One line of history, whole."""
    return [
        line(Span(said_as(view.message), "strong")),
        fact(tr("col.time"), stamp(view.at)),
        fact(tr("col.level"), level_look(view.level).span()),
        fact(tr("detail.kind"), view.kind),
        fact(tr("col.group"), view.group or NONE),
        fact(tr("col.member"), view.instance or NONE),
        fact(tr("col.host"), view.host or NONE),
        fact(tr("detail.actor"), view.actor),
    ]


def problems(found: Iterable[Any]) -> list[Line]:
    """The findings of an error, each with its place, its values and its remedy."""
    out: list[Line] = []
    for problem in found:
        if out:
            out.append(())
        message, remedy = said(problem)
        out.append(line(Span(message, "strong")))
        if problem.path:
            out.append(fact(tr("detail.path"), problem.path))
        for name, value in problem.values.items():
            parts = lines(str(value))
            out.append(fact(str(name), parts[0]))
            out += [fact("", more) for more in parts[1:]]
        if remedy:
            out.append(fact(tr("detail.remedy"), Span(remedy, "accent")))
        if problem.rule:
            out.append(fact(tr("detail.rule"), Span(problem.rule, "dim")))
    return out


def _revision(view: MemberView) -> Line:
    stale = (Span(f"  {glyphs().clock} {tr('member.stale')}", "warn"),) if view.stale else ()
    return (Span(view.revision or NONE), *stale)


def _labels(labels: dict[str, str]) -> str:
    return ", ".join(f"{k}={v}" for k, v in sorted(labels.items())) or NONE
