"""Pure: the deployment form. A document as plain data, its fields, and what one key does to each.

The document itself is the state: what it holds is set, what it lacks is inherited or the default.
Router rows that a mode generates are derived, never stored, so that they follow the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pdtui.state import words
from pdtui.state.document import get, put, without

if TYPE_CHECKING:
    from backend.domain.views import ModeChoice, ModeView

Tab = Literal["deployment", "disaggregation", "prefill", "decode", "router", "yaml"]
ROLE_TABS: tuple[Tab, ...] = ("prefill", "decode", "router")
Kind = words.Kind
Marker = Literal[
    "set",
    "default",
    "needed",
    "inherit",
    "override",
    "generated",
    "changed",
    "own",
    "platform",
    "none",
]
ENGINES = ("vllm", "sglang", "vllm-ascend", "custom")
MODE = "spec.disaggregation.mode"


@dataclass(frozen=True)
class Field:
    """One field: where it stands, how it is written, and whose value it takes while unset.

    `called` is its name in the catalogue of words where the path's last part is not; one that is
    `needed` has no default.
    """

    path: str
    kind: Kind = "text"
    inherits: str = ""
    options: tuple[str, ...] = ()
    default: Any = None
    called: str = ""
    needed: bool = False

    @property
    def name(self) -> str:
        """What it is called: the last part of the path."""
        return self.called or self.path.rpartition(".")[2]


@dataclass(frozen=True)
class Item:
    """One row of a tab: a field, one entry of a list, or the place where an entry is added.

    `at` is the span of argv tokens (or of variables) an entry covers. `note` says more of it.
    """

    key: str
    field: Field
    part: Literal["field", "entry", "add", "mode"]
    text: str
    marker: Marker
    at: tuple[int, int] = (0, 0)
    name: str = ""
    note: str = ""
    locked: bool = False
    options: tuple[str, ...] = ()


def _overridable(base: str, up: str, *, custom: bool) -> tuple[Field, ...]:
    """The fields a deployment has and a member role may set for itself."""

    def at(name: str, kind: Kind = "text", **more: Any) -> Field:
        return Field(f"{base}.{name}", kind, f"{up}.{name}" if up else "", **more)

    engine = (at("engine", "choice", options=ENGINES),) if custom or not up else ()
    return (
        *engine,
        at("engine_version"),
        at("image"),
        at("executable"),
        at("accelerators", "number", default=1),
        at("hosts", "hosts"),
        at("parameters", "list", default=[]),
        at("env", "env", default={}),
        at("run_command", "command"),
        at("placement", "placement"),
        at("extended_kv_cache", "cache", default={"kind": "none"}),
    )


def _router(custom: bool) -> tuple[Field, ...]:
    base, up = "spec.roles.router", "spec"
    return (
        Field(f"{base}.parameters", "list", default=[]),
        Field(f"{base}.env", "env", f"{up}.env", default={}),
        Field(f"{base}.port", "number"),
        Field(f"{base}.image", "text", f"{up}.image"),
        Field(f"{base}.executable"),
        Field(f"{base}.run_command", "command", f"{up}.run_command" if custom else ""),
        Field(f"{base}.hosts", "hosts", f"{up}.hosts"),
        Field(f"{base}.placement", "placement"),
    )


@dataclass(frozen=True)
class Form:
    """A document under edit. Every change gives a new form; `document` is never mutated.

    `original` is the stored document, None for a new deployment. `version` is the stored one the
    edit began from. `choices` are what the hosts make of the modes, once that is known.
    """

    document: Mapping[str, Any]
    original: Mapping[str, Any] | None = None
    modes: tuple[ModeView, ...] = ()
    version: int = 0
    choices: tuple[ModeChoice, ...] = ()

    # what it is

    @property
    def name(self) -> str:
        """The deployment's name, as far as it is written."""
        return str(get(self.document, "metadata.name") or "")

    @property
    def changed(self) -> bool:
        """Whether anything differs from what is stored, or from an empty form."""
        return self.output() != (self.original if self.original is not None else blank())

    @property
    def mode_name(self) -> str | None:
        """The chosen mode's name; None without disaggregation."""
        found = get(self.document, MODE)
        return None if found is None else str(found)

    @property
    def mode(self) -> ModeView | None:
        """The chosen mode, if the catalogue knows it."""
        return next((m for m in self.modes if m.name == self.mode_name), None)

    @property
    def engine(self) -> str:
        """The deployment's engine."""
        return str(get(self.document, "spec.engine") or "")

    @property
    def membership(self) -> str:
        """How the router learns of changes; its own command makes it the operator's matter."""
        if self.mode_name is None:
            return "none"
        if get(self.document, "spec.roles.router.run_command") is not None:
            return "manual"
        return self.mode.membership if self.mode else "manual"

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """The tabs there are: roles only with disaggregation."""
        roles = ROLE_TABS if self.mode_name is not None else ()
        return ("deployment", "disaggregation", *roles, "yaml")

    def output(self) -> dict[str, Any]:
        """The document as it would be saved: without what disaggregation rules out, and without
        router rows that only repeat what the mode generates."""
        out = dict(self.document)
        if self.mode_name is None:
            out = without(out, "spec.roles")
            return without(out, "spec.disaggregation")
        out = without(out, "spec.replicas")
        return words.strip_router(out, self.mode)

    # its rows

    def fields(self, tab: Tab) -> tuple[Field, ...]:
        """The fields of a tab, in order."""
        custom = self.mode_name == "custom"
        match tab:
            case "deployment":
                plain = () if self.mode_name else (Field("spec.replicas", "number", default=1),)
                return (
                    Field("metadata.name", needed=True),
                    Field("spec.model", needed=True),
                    Field("spec.served_model_name"),
                    *_overridable("spec", "", custom=True),
                    *plain,
                    Field("metadata.labels", "labels", default={}),
                )
            case "disaggregation":
                if self.mode_name is None:
                    return ()
                policies = ("fail", "recompute")
                base = "spec.disaggregation"
                counts = (
                    Field(f"spec.roles.{role}.replicas", "number", default=1,
                          called=f"replicas_{role}")
                    for role in ("prefill", "decode")
                )  # fmt: skip
                return (
                    *counts,
                    Field(f"{base}.kv_load_failure_policy", "choice", "", policies, "fail"),
                    Field(f"{base}.allow", "list", default=[]),
                    Field(f"{base}.connector_extra.prefill", "json", default={}),
                    Field(f"{base}.connector_extra.decode", "json", default={}),
                )
            case "prefill" | "decode":
                base = f"spec.roles.{tab}"
                count = Field(f"{base}.replicas", "number", default=1)
                return (count, *_overridable(base, "spec", custom=custom))
            case "router":
                return _router(custom)
            case _:
                return ()

    def items(self, tab: Tab) -> list[Item]:
        """The rows of a tab."""
        out: list[Item] = []
        if tab == "disaggregation":
            out += [self._mode_item(None), *(self._mode_item(m) for m in self.modes)]
        for one in self.fields(tab):
            out.append(self._head(one))
            if one.kind in ("list", "env"):
                out += self._entries(one)
        return out

    def why_not(self, mode: ModeView | None) -> str | None:
        """Why a mode cannot be chosen, or None: `engine` when it is for another one, else what the
        hosts lack."""
        if mode is None:
            return None
        if mode.engines and self.engine not in mode.engines:
            return "engine"
        chosen = self.choice(mode.name)
        return (chosen.why_not or None) if chosen else None

    def choice(self, mode: str) -> ModeChoice | None:
        """What the backend says of a mode for this engine, once it was asked."""
        return next((c for c in self.choices if c.mode == mode), None)

    def _mode_item(self, mode: ModeView | None) -> Item:
        name = mode.name if mode else ""
        chosen = (self.mode_name or "") == name
        return Item(
            f"mode:{name}",
            Field(MODE, "choice"),
            "mode",
            mode.title if mode else "",
            "set" if chosen else "none",
            name=name,
            note=mode.summary if mode else "",
            locked=self.why_not(mode) is not None and not chosen,
        )

    def value(self, one: Field) -> Any:
        """What holds for a field: its own value, the inherited one, or the default."""
        for path in (one.path, one.inherits):
            if path and (found := get(self.document, path)) is not None:
                return found
        return one.default

    def marker(self, one: Field) -> Marker:
        """Whose value it is."""
        own = get(self.document, one.path) is not None
        if one.inherits:
            return "override" if own else "inherit"
        if one.needed and not self.value(one):
            return "needed"
        return "set" if own else "default"

    def _head(self, one: Field) -> Item:
        text = words.written(one.kind, self.value(one))
        return Item(one.path, one, "field", text, self.marker(one), options=one.options)

    def _entries(self, one: Field) -> list[Item]:
        marker: Marker = "inherit" if self.marker(one) == "inherit" else "set"
        own = [
            Item(f"{one.path}[{at[0]}]", one, "entry", text, marker, at, name)
            for at, name, text in words.rows(one.kind, self.value(one))
        ]
        if one.path.startswith("spec.roles.router."):
            own = _with_generated(one, own, self.mode)
        return [*own, Item(f"{one.path}+", one, "add", "", "none")]

    # what a key does

    def edit(self, item: Item, text: str) -> Form:
        """The form with an item's text changed; an emptied entry is taken out."""
        one = item.field
        if item.part == "field":
            found = words.read(one.kind, text, get(self.document, one.path))
            if found is None and one.inherits and one.kind != "number":
                found = words.empty(one.kind)
            return self.cleared(one.path) if found is None else self.with_value(one.path, found)
        made = item.marker in ("generated", "platform")
        if made and text.strip() == item.text.strip():
            return self
        base = self.value(one)
        end = len(base) if isinstance(base, list | dict) else 0
        at = (end, end) if made or item.part == "add" else item.at
        return self._with_entries(one, words.spliced(one.kind, base, at, text))

    def remove(self, item: Item) -> Form:
        """An entry taken out, or a field back to what it would be unset."""
        if item.part == "field":
            return self.cleared(item.field.path)
        if item.part != "entry" or item.marker in ("generated", "platform"):
            return self
        one = item.field
        return self._with_entries(one, words.spliced(one.kind, self.value(one), item.at, ""))

    def override(self, one: Field) -> Form:
        """The inherited value copied, so that it can be changed for this role alone."""
        if not one.inherits or self.marker(one) == "override":
            return self
        value = self.value(one)
        return self.with_value(one.path, words.empty(one.kind) if value is None else value)

    def inherit(self, one: Field) -> Form:
        """The role's own value dropped."""
        return self.cleared(one.path)

    def choose_mode(self, name: str | None) -> Form:
        """Another mode, or none. What was written for roles is kept for coming back."""
        if name is None:
            return replace(self, document=without(self.document, "spec.disaggregation"))
        form = self.with_value(MODE, name)
        for role in ("prefill", "decode"):
            path = f"spec.roles.{role}.replicas"
            if get(form.document, path) is None:
                form = form.with_value(path, 1)
        return form

    def with_value(self, path: str, value: Any) -> Form:
        """The form with `path` set."""
        return replace(self, document=put(self.document, path, value))

    def cleared(self, path: str) -> Form:
        """The form without `path`."""
        return replace(self, document=without(self.document, path))

    def with_document(self, document: Mapping[str, Any]) -> Form:
        """Another document, from the editor."""
        return replace(self, document=document)

    def _with_entries(self, one: Field, entries: Any) -> Form:
        if not entries and not one.inherits:
            return self.cleared(one.path)
        return self.with_value(one.path, entries)


def _with_generated(one: Field, own: list[Item], mode: ModeView | None) -> list[Item]:
    """The router's rows: what the mode generates, each replaced by a changed one of the same name;
    then one's own."""
    env = one.kind == "env"
    made = [r for r in (mode.rows if mode else ()) if (r.kind == "env") == env]
    left = [replace(i, marker="own") if i.marker == "set" else i for i in own]
    out: list[Item] = []
    for row in made:
        text = f"{row.name}={row.text}" if env else row.text
        mine = [i for i in left if words.same_name(i.name, row.name)]
        if mine:
            left = [i for i in left if i not in mine]
            out += [replace(i, marker="changed", note=row.note, options=row.options) for i in mine]
        else:
            marker: Marker = "platform" if row.locked else "generated"
            key = f"{one.path}~{row.name}"
            out.append(
                Item(key, one, "entry", text, marker, (0, 0), row.name, row.note, row.locked)
            )
    return [*out, *left]


def blank() -> dict[str, Any]:
    """The document of an empty form."""
    return {
        "apiVersion": "pdtui/v1",
        "kind": "Deployment",
        "metadata": {"name": ""},
        "spec": {"model": "", "engine": "vllm"},
    }
