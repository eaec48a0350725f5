"""A diagnosis as lines: the cause, the log around it, what to do, what else was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pdtui.i18n import tr
from pdtui.i18n.catalog import current, word
from pdtui.present.cells import Line, Span, Tone, line
from pdtui.present.detail import fact
from pdtui.present.status import glyphs

if TYPE_CHECKING:
    from backend.domain.diagnosis.model import Diagnosis, Finding, GroupDiagnosis

ALSO = 6
"""Other findings that are listed."""
TONE: dict[str, Tone] = {"fatal": "bad", "unrecognised": "bad", "warning": "warn", "asked": "dim"}


def group(found: GroupDiagnosis) -> list[Line]:
    """A group's causes first, then the members that follow from them, then the quiet ones."""
    count = len(found.causes)
    if count:
        key = "diagnosis.causes" if count > 1 else "diagnosis.causes.one"
        head = Span(tr(key, count=count, name=found.group), "strong")
    else:
        head = Span(tr("diagnosis.clear", name=found.group), "strong")
    out: list[Line] = [line(head)]
    order = {name: n for n, name in enumerate(found.causes)}
    members = sorted(found.members, key=lambda d: (order.get(d.name, count), not d.peer, d.name))
    for diagnosis in members:
        out += [(), *member(diagnosis)]
    return out


def member(found: Diagnosis) -> list[Line]:
    """One member's diagnosis."""
    about = [word("role", found.role)] if found.role else []
    if found.generation > 1 or found.previous:
        about.append(tr("diagnosis.attempt", number=found.generation))
    out: list[Line] = [
        line(Span(found.name, "accent"), Span(f"  {tr('comma').join(about)}", "dim"))
    ]
    if found.unread:
        out.append(line(Span(f"  {found.unread}", "warn")))
    elif found.first is None:
        out.append(line(Span(f"  {tr('diagnosis.nothing')}", "dim")))
    else:
        out += _finding(found.first, found.peer)
        out += [_also(f) for f in found.others[:ALSO]]
    for earlier in found.previous:
        if earlier.first is not None:
            number = tr("diagnosis.attempt", number=earlier.generation)
            out.append(
                _fact(
                    tr("diagnosis.before"), f"{number}{tr('colon')}{_words(earlier.first)}", "dim"
                )
            )
    if found.truncated:
        out.append(line(Span(f"  {tr('diagnosis.cut')}", "dim")))
    return out


def _finding(finding: Finding, peer: str) -> list[Line]:
    from backend.domain.diagnosis.document import link

    language = current()
    out: list[Line] = []
    if peer:
        out.append(_fact(tr("diagnosis.cause"), tr("diagnosis.peer", peer=peer), "warn"))
    cause = finding.cause.text(language) or tr("diagnosis.unknown")
    tone = "dim" if peer else TONE[finding.severity]
    out.append(_fact("" if peer else tr("diagnosis.cause"), cause, tone))
    for n, note in enumerate(finding.notes):
        out.append(_fact("" if n else tr("diagnosis.where"), note.text(language)))
    if finding.remedy and not peer:
        out.append(_fact(tr("diagnosis.remedy"), finding.remedy.text(language), "ok"))
    for explained in finding.explains:
        name, _, rule = explained.partition(" ")
        out.append(_fact(tr("diagnosis.also"), tr("diagnosis.explains", name=name, rule=rule)))
    times = (
        f"{tr('comma')}{tr('diagnosis.times', count=finding.count)}" if finding.count > 1 else ""
    )
    place = tr("diagnosis.line", line=finding.line)
    out.append(_fact(tr("diagnosis.log"), f"{place}{times}", "dim"))
    for n, text in enumerate(finding.context):
        mark = glyphs().cursor if n == finding.at else " "
        out.append(line(Span(f"  {mark} {text}", "strong" if n == finding.at else "dim")))
    if finding.rule:
        out.append(_fact(tr("diagnosis.rule"), f"{finding.rule}  {link(finding.rule)}", "dim"))
    return out


def _also(finding: Finding) -> Line:
    place = tr("diagnosis.line", line=finding.line)
    return _fact(tr("diagnosis.also"), f"{place}{tr('colon')}{_words(finding)}", "dim")


def _words(finding: Finding) -> str:
    return finding.cause.text(current()) or finding.text


def _fact(name: str, value: str, tone: Tone = "text") -> Line:
    return fact(name, Span(value, tone))
