"""docs/rules.md as text: the table of rules, and what each of them says."""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.rules.table import RULES, Rule
from backend.domain.rules.words import TEXT

_INTRO = """\
# Rules asked at every save

Generated from `backend/domain/rules` by `make docs`; do not edit.

A document is judged before it is stored, by the console, the API (`POST /check`) and
`pdtui check FILE [--json] [--all]` alike. A verdict is one of

- **refused**: provably wrong. Nothing is stored.
- **warning**: shown; the save goes on.
- **unverified**: one side is known and the other cannot be. The save goes on, and the group carries
  the mark `unverified`, which says what would settle it.
- **fine**: nothing was found; listed with `--all`.

What is compared are *effective* values: a role's own flag in any spelling its engine takes (dashes
or underscores, `=` or a space, short names, one pasted line, JSON whole or key by key; the last one
wins), else the deployment's, else what follows from the model's `config.json`, read over SFTP from
the hosts that members may run on. A hub id counts as known where a host's own cache holds a copy.
Both sides silent is agreement. A null environment inherits, `{}` is empty.

`pdtui check` asks the backend that runs. Without one it judges by the recipes alone, skips the host
rules and says so. Exit code: 1 when something is refused, 2 when a document cannot be read, else 0.

A rule marked *may be let through* turns from refused to unverified when a document names it in
`spec.disaggregation.allow`. All others hold always.
"""
_SCOPES = {
    "document": "every document",
    "pair": "with disaggregation",
    "host": "where there are hosts",
}


def document() -> str:
    """The whole page."""
    return "\n".join([_INTRO, *_table(), "", *(line for r in RULES for line in _section(r))])


def _table() -> Iterator[str]:
    yield "| rule | asks that | verdicts | may be let through |"
    yield "|---|---|---|---|"
    for r in RULES:
        through = "yes" if r.overridable else ""
        anchor = r.id.replace(".", "")
        yield f"| [`{r.id}`](#{anchor}) | {r.summary} | {', '.join(r.verdicts)} | {through} |"


def _section(rule: Rule) -> Iterator[str]:
    yield f"## {rule.id}"
    yield ""
    yield f"{rule.summary} Asked of {_SCOPES[rule.scope]}. Source: {rule.source}."
    yield ""
    for key, entry in TEXT.items():
        name, _, case = key.partition(":")
        if name == rule.id:
            label = f"`{case}`: " if case else ""
            yield f"- {label}{_plain(entry['en'][0])} *{_plain(entry['en'][1])}*"
            yield f"  {_plain(entry['zh'][0])}{_plain(entry['zh'][1])}"
    yield ""


def _plain(template: str) -> str:
    """The template with its values' names in capitals, as placeholders are read."""
    shown = _Names()
    return template.format_map(shown)


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return name.upper()
