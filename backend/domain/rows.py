"""The router's list of arguments and environment, prefilled with what would be generated.

A row left as it was is no setting: the backend strips it at save and goes on generating it. A
changed row is kept and wins, because the user's rows come last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from backend.domain.deployment import Spec
from backend.domain.engine_args import flatten, normal, occurrences, parse_json, value
from backend.domain.errors import Problem
from backend.domain.inherit import effective
from backend.domain.mode import Mode, Tunable
from backend.domain.template import Renderer, compact

Kind = Literal["connection", "tunable", "connector", "argument", "env"]


@dataclass(frozen=True)
class Row:
    """One prefilled row: what a form shows for a flag or a variable.

    `text` is the row as edited (a flag with its value, placeholders in place; for `env` the value
    of `name`), `locked` rows are the platform's and cannot be changed.
    """

    kind: Kind
    name: str
    text: str
    locked: bool = False
    tunable: Tunable | None = None

    def preview(self, scope: Mapping[str, object]) -> str:
        """The row with every placeholder that `scope` has a value for filled in."""
        return Renderer(scope).text(self.text, self.name)


def prefilled_rows(mode: Mode, role: str, *, connector_flag: str | None = None) -> tuple[Row, ...]:
    """The rows a form shows for `role` of `mode`: connection arguments, tunables, environment.

    For members the connector is one row of compact JSON, if its engine's `connector_flag` is given.
    """
    rows: list[Row] = []
    if role == "router":
        router = mode.router
        owned = {normal(f) for f in (*router.owned_flags, *router.peer_flags)}
        rows += [
            Row("connection", name, text, normal(name) in owned)
            for name, text in _folded(router.args)
        ]
        rows += [
            Row("tunable", t.flag, f"{t.flag} {t.default}", tunable=t)
            for t in router.tunables
            if t.default is not None
        ]
        env = router.env
    else:
        recipe = mode.role(role)
        if recipe is None:
            return ()
        if recipe.connector is not None and connector_flag:
            text = f"{connector_flag} {compact(recipe.connector)}"
            rows.append(Row("connector", connector_flag, text))
        rows += [Row("argument", name, text) for name, text in _folded(recipe.args)]
        env = recipe.env
    rows += [Row("env", name.removesuffix("?"), text) for name, text in env.items()]
    return tuple(rows)


def strip_unmodified(
    rows: Sequence[Row],
    parameters: Sequence[str] | None,
    env: Mapping[str, str] | None,
    scope: Mapping[str, object] | None = None,
) -> tuple[list[str] | None, dict[str, str] | None]:
    """What is left of a role's parameters and environment once prefilled rows are taken out.

    A row counts as unmodified in any spelling of the same flag and value; with a `scope` also when
    it comes back as its preview. None stays None; a list that only held prefilled rows becomes None
    again, so that the role inherits, while an explicit empty one stays.
    """
    if scope is not None:
        rows = [*rows, *(replace(r, text=r.preview(scope)) for r in rows)]
    left_params = None if parameters is None else _left(rows, parameters)
    if not left_params and parameters:
        left_params = None
    left_env: dict[str, str] | None = None
    if env is not None:
        made = [(r.name, r.text) for r in rows if r.kind == "env"]
        left_env = {k: v for k, v in env.items() if (k, v) not in made}
        if not left_env and env:
            left_env = None
    return left_params, left_env


def switch_mode(
    before: Sequence[Row], after: Sequence[Row], parameters: Sequence[str]
) -> list[str]:
    """A form's parameter list on a change of mode: the old mode's unmodified rows make room for
    the new mode's; edited rows stay, behind them."""
    made = [r.text for r in after if r.kind != "env"]
    return made + _left(before, parameters)


def effective_policies(mode: Mode | None, spec: Spec) -> str:
    """One line: how requests are really distributed, whatever the flags seem to say."""
    if mode is None or spec.disaggregation is None:
        return ""
    router = effective(spec, "router")
    if router.run_command is not None or not mode.router.command:
        return "as your own router decides"
    args = flatten(router.parameters)
    defaults = {
        normal(t.flag): str(t.default) for t in mode.router.tunables if t.default is not None
    }

    def chosen(flag: str) -> str | None:
        return value(args, flag) or defaults.get(normal(flag)) if flag else None

    scope = {
        "policy": chosen("--policy") or mode.router.default_policy,
        "prefill_policy": chosen(mode.router.prefill_policy) or mode.router.default_policy,
        "decode_policy": chosen(mode.router.decode_policy) or mode.router.default_policy,
    }
    return Renderer(scope).text(mode.router.policies, "policies")


def tunable_problems(mode: Mode, spec: Spec) -> tuple[Problem, ...]:
    """What is wrong with the router rows a user wrote, against each tunable's options, bounds and
    the members it needs: what the router itself would end at its start for."""
    router = effective(spec, "router")
    if router.run_command is not None:
        return ()
    args = flatten(router.parameters)
    found = []
    for tunable in mode.router.tunables:
        written = value(args, tunable.flag)
        text = written if written is not None else tunable.default
        case, bound = _misfit(tunable, str(text), spec) if text is not None else ("", None)
        if case:
            count = effective(spec, tunable.role).replicas if tunable.role else None
            about = {"bound": bound, "role": tunable.role, "members": count}
            found.append(
                Problem(
                    rule="router.members" if case == "members" else "router.tunable",
                    case=case,
                    message=f"{tunable.flag} {text}: {_REASONS[case].format(**about)}.",
                    path="spec.roles.router.parameters",
                    remedy=f"{tunable.note[:1].upper()}{tunable.note[1:]}." if tunable.note else "",
                    values={"flag": tunable.flag, "value": text, "note": tunable.note, **about},
                )
            )
    return tuple(found)


_REASONS = {
    "options": "must be one of {bound}",
    "members": "needs at least {bound} {role} members, and there are {members}",
    "number": "must be a number",
    "minimum": "must be at least {bound}",
    "maximum": "must be at most {bound}",
}


def _misfit(tunable: Tunable, text: str, spec: Spec) -> tuple[str, str | None]:
    """What the value offends against, and the bound; an empty name when it fits."""
    if tunable.options and text not in tunable.options:
        return "options", ", ".join(tunable.options)
    least = tunable.least_members.get(text, 0)
    if least and tunable.role is not None and effective(spec, tunable.role).replicas < least:
        return "members", str(least)
    if tunable.minimum is None and tunable.maximum is None:
        return "", None
    try:
        number = float(text)
    except ValueError:
        return "number", None
    if tunable.minimum is not None and not number >= tunable.minimum:
        return "minimum", f"{tunable.minimum:g}"
    if tunable.maximum is not None and not number <= tunable.maximum:
        return "maximum", f"{tunable.maximum:g}"
    return "", None


def _folded(args: Sequence[str]) -> list[tuple[str, str]]:
    return [(args[o.start], " ".join(args[o.start : o.stop])) for o in occurrences(args)]


def _left(rows: Sequence[Row], parameters: Sequence[str]) -> list[str]:
    made = {_key(r.text) for r in rows if r.kind != "env"}
    left: list[str] = []
    index = 0
    items = list(parameters)
    while index < len(items):
        pair = items[index : index + 2]
        if _key(items[index]) in made and not _has_value_next(items, index):
            index += 1
        elif len(pair) == 2 and _has_value_next(items, index) and _key(*pair) in made:
            index += 2
        else:
            left.append(items[index])
            index += 1
    return left


def _has_value_next(items: Sequence[str], index: int) -> bool:
    tokens = flatten(items[index : index + 2])
    seen = occurrences(tokens)
    return (
        len(seen) == 1
        and seen[0].stop - seen[0].start == 2
        and len(flatten(items[index : index + 1])) == 1
    )


def _key(*items: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((o.key, _canonical(o.value)) for o in occurrences(flatten(items)))


def _canonical(text: str | None) -> str | None:
    if text is None or text.lstrip()[:1] != "{":
        return text
    try:
        return json.dumps(parse_json(text), sort_keys=True)
    except ValueError:
        return text
