"""docs/troubleshooting.md as text: the rules of diagnosis by symptom."""

from __future__ import annotations

import re
from collections.abc import Iterator

from backend.domain.diagnosis.model import Rule
from backend.domain.diagnosis.table import RULES
from backend.domain.diagnosis.text import bare, shown

PAGE = "docs/troubleshooting.md"
TOPICS: dict[str, str] = {
    "ports": "A port is taken",
    "pairing": "The two sides do not fit",
    "transfer": "KV does not arrive",
    "network": "Interfaces, addresses, transports",
    "router": "The router",
    "arguments": "Arguments that are refused",
    "model": "The model",
    "memory": "Memory of accelerators",
    "accelerator": "Accelerators and drivers",
    "library": "Libraries",
    "program": "Programs",
    "container": "Containers",
    "host": "The host",
    "timeout": "Waiting in vain",
    "life": "Not a failure",
}
"""The page's parts, in its order."""

_INTRO = """\
# What a log line means

Generated from `backend/domain/diagnosis` by `python -m modes.generate_troubleshooting`; do not
edit.

`pdtui diagnose GROUP`, `pdtui diagnose INSTANCE` and `pdtui diagnose FILE...` read logs and name
the first cause; in the console `i` does so for the group or member under the cursor, and for the
log that is shown. How a cause is found:

- The earliest line that a rule knows wins. A line that is a *symptom* yields to one that is a
  cause, wherever that stands. Once a program has ended, what ends programs counts before what
  fails single requests.
- A tail (`Engine core initialization failed`, the last line of a traceback) is never a cause, and
  a line that only looks like an error is nobody's.
- Ports and addresses are looked up: whose band, which instance, which host.
- The logs of a group are read together: what one member's failure makes the others say is told
  once, at the member it lies with.
- The logs of the attempts before the present one are kept and read; the first counts most.

A line that no rule knows is shown as it is. Below, by symptom: what the log says, what it means,
and what to do.
"""


def document() -> str:
    """The whole page."""
    lines = [_INTRO, *_contents(), ""]
    for topic, title in TOPICS.items():
        lines += [f"## {title}", ""]
        for rule in _of(topic):
            lines += _section(rule)
    lines += ["## Lines that only look like errors", ""]
    lines += [f"- `{_line(r)}`: {r.cause.en} {r.cause.zh}" for r in RULES if _quiet(r)]
    return "\n".join(lines) + "\n"


def link(rule: str) -> str:
    """Where a rule is explained, from the root of the project."""
    return f"{PAGE}#{anchor(rule)}" if rule else PAGE


def anchor(rule: str) -> str:
    """A heading's anchor as forges make it."""
    return re.sub(r"[^\w-]", "", rule)


def _contents() -> Iterator[str]:
    yield "| symptom | rule | kind |"
    yield "|---|---|---|"
    for topic in TOPICS:
        for rule in _of(topic):
            said = _line(rule).replace("|", "\\|")
            yield f"| `{said[:90]}` | [{rule.id}](#{anchor(rule.id)}) | {_kind(rule)} |"


def _of(topic: str) -> list[Rule]:
    return [r for r in RULES if r.topic == topic and not _quiet(r) and r.severity != "consequence"]


def _quiet(rule: Rule) -> bool:
    return rule.severity == "harmless"


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}"
    yield ""
    yield "```"
    yield from (shown(line) for line in rule.sample.split("\n"))
    yield "```"
    yield ""
    yield f"{_plain(rule.cause.en)} *{_plain(rule.remedy.en)}*"
    yield ""
    yield f"{_plain(rule.cause.zh)}{_plain(rule.remedy.zh)}"
    yield ""
    yield f"{_kind(rule).capitalize()}. Line from: {rule.source}."
    yield ""


def _kind(rule: Rule) -> str:
    if rule.severity == "asked":
        return "no failure"
    if rule.severity == "warning":
        return "warning"
    if rule.symptom:
        return "symptom"
    return "fatal" if rule.ends else "fails requests"


def _line(rule: Rule) -> str:
    """The part of the sample that is looked for."""
    lines = rule.sample.split("\n")
    line, needle = next((x, n) for x in lines for n in rule.needles if n in x)
    said = bare(line)
    at = said.find(needle)
    text = said if at < 50 else f"... {said[at:]}"
    return text[:120].replace("`", "'")


def _plain(template: str) -> str:
    return template.format_map(_Names())


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"*{name.upper()}*"
