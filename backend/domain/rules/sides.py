"""One role as a rule reads it: what it writes, in any spelling, and what follows from its model.

A role's own command line counts like its parameters: a flag in `run_command` is as written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from packaging.version import InvalidVersion, Version

from backend.domain.cache import cache_scope
from backend.domain.deployment import Spec
from backend.domain.engine_args import Occurrence, flatten, json_value, normal, occurrences
from backend.domain.inherit import CUSTOM, EffectiveRole
from backend.domain.mode import Catalogue, Mode
from backend.domain.rules.known import Known, number_in
from backend.domain.template import Renderer

MODEL_FLAGS = ("--model", "--model-path")
REVISION_FLAGS = ("--revision",)
OTHER_DEGREES = ("data", "pipeline", "context")
"""Degrees that, written alone, leave the tensor parallel size at 1: as a launch has it."""


@dataclass(frozen=True)
class Written:
    """One flag as a role writes it last: the value (None where it has none) and its path."""

    value: str | None
    path: str
    key: str


@dataclass(frozen=True)
class Side:
    """A member role, its engine's spellings, and what is known of its model and version."""

    role: EffectiveRole
    spec: Spec
    mode: Mode | None
    catalogue: Catalogue
    known: Known

    @property
    def name(self) -> str:
        """The role's name."""
        return self.role.name

    @cached_property
    def flags(self) -> Mapping[str, Sequence[str]]:
        """Spellings by factor: the engine's own, or any engine's for a command of one's own."""
        engine = self.catalogue.engines.get(self.role.engine)
        if engine is not None and engine.flags:
            return engine.flags
        union: dict[str, list[str]] = {}
        for recipe in self.catalogue.engines.values():
            for factor, spellings in recipe.flags.items():
                union.setdefault(factor, []).extend(spellings)
        return union

    @cached_property
    def _tokens(self) -> tuple[tuple[str, str], ...]:
        """Every token with the path of the item it came from, the cache's own ones first."""
        found = [(token, self.path("extended_kv_cache")) for token in self._cache_args()]
        for field, items in (
            ("run_command", self.role.run_command or ()),
            ("parameters", self.role.parameters),
        ):
            base = self.path(field)
            for index, item in enumerate(items):
                tokens = (item,) if field == "run_command" else flatten([item])
                found += [(token, f"{base}[{index}]") for token in tokens]
        return tuple(found)

    @cached_property
    def args(self) -> tuple[str, ...]:
        """The tokens alone."""
        return tuple(token for token, _ in self._tokens)

    def _cache_args(self) -> list[str]:
        """Arguments that the role's extended cache adds, where its recipe has such."""
        cache = self.role.extended_kv_cache
        composition = self.mode.cache if self.mode else None
        if cache.kind != "in_process" or composition is None or composition.in_process is None:
            return []
        added = composition.in_process.role(self.name)
        if added is None:
            return []
        renderer = Renderer(cache_scope(self.role, self.role.width, 0, None))
        groups = [g for g in (added.args, *added.optional_args) if not renderer.lacks(g)]
        return [t for g in groups for t in renderer.argv(g, "the cache's arguments")]

    def path(self, field: str) -> str:
        """Where the role's value of a field is written."""
        if field in self.role.inherited or self.spec.disaggregation is None:
            return f"spec.{field}"
        return f"spec.roles.{self.name}.{field}"

    def written(self, factor: str) -> Written | None:
        """The last occurrence of the factor's flag that has a value, or None."""
        return self.flag(*self.flags.get(factor, ()))

    def flag(self, *spellings: str) -> Written | None:
        """The last occurrence of any of the spellings that has a value, or None."""
        found = [o for o in self._seen(*spellings) if o.value is not None and not o.subkeys]
        if not found:
            return None
        last = found[-1]
        return Written(last.value, self._tokens[last.start][1], last.key)

    def switched(self, *factors: str) -> Written | None:
        """The last of several switches that is written; its key tells which."""
        return self.any(*(s for f in factors for s in self.flags.get(f, ())))

    def any(self, *spellings: str) -> Written | None:
        """The last occurrence of any of the spellings, with a value or without."""
        found = self._seen(*spellings)
        if not found:
            return None
        return Written(found[-1].value, self._tokens[found[-1].start][1], found[-1].key)

    @cached_property
    def _by_key(self) -> Mapping[str, Sequence[Occurrence]]:
        """Every flag as written, in order, by its normal spelling."""
        found: dict[str, list[Occurrence]] = {}
        for seen in occurrences(self.args):
            found.setdefault(seen.key, []).append(seen)
        return found

    def _seen(self, *spellings: str) -> list[Occurrence]:
        keys = dict.fromkeys(normal(s) for s in spellings)
        found = [o for key in keys for o in self._by_key.get(key, ())]
        return sorted(found, key=lambda o: o.start) if len(keys) > 1 else found

    def every(self, *spellings: str) -> Iterator[Written]:
        """Every occurrence of any of the spellings among the role's parameters."""
        base = f"{self.path('parameters')}["
        for seen in self._seen(*spellings):
            path = self._tokens[seen.start][1]
            if path.startswith(base):
                yield Written(seen.value, path, seen.key)

    def where(self, factor: str, field: str = "parameters") -> str:
        """The path of the factor's flag, or of the field it would be written in."""
        found = self.written(factor)
        return found.path if found else self.path(field)

    def json(self, factor: str) -> dict[str, Any] | None:
        """The factor's JSON object, or None where it is not written. Raises ValueError."""
        spellings = self.flags.get(factor, ())
        return json_value(self.args, *spellings) if self._seen(*spellings) else None

    # -- the model -------------------------------------------------------------------------

    @cached_property
    def model(self) -> str:
        """The model's path or id, as the engine is given it."""
        found = self.flag(*MODEL_FLAGS)
        return found.value if found and found.value else self.spec.model

    @cached_property
    def revision(self) -> str | None:
        """The revision that is asked for, or None."""
        found = self.flag(*REVISION_FLAGS)
        return found.value if found else None

    @cached_property
    def overrides(self) -> dict[str, Any] | None:
        """Overrides of the model's configuration: empty without any, None when unreadable."""
        try:
            return self.json("hf_overrides") or {}
        except ValueError:
            return None

    @cached_property
    def raw_config(self) -> Mapping[str, Any] | None:
        """The model's configuration with the overrides over it; None where it is not known."""
        seen = [s for _, s in self.known.models_of(self.role, self.model) if s.config is not None]
        if not seen or seen[0].config is None or self.overrides is None:
            return None
        return overlaid(seen[0].config, self.overrides)

    @cached_property
    def config(self) -> Mapping[str, Any] | None:
        """As `raw_config`, seen from the language model inside a multimodal one."""
        config = self.raw_config
        while config is not None:
            inner = next(
                (config[n] for n in self.catalogue.layouts.nested if _object(config.get(n))), None
            )
            if inner is None:
                break
            rest = {k: v for k, v in config.items() if not _object(v)}
            config = {**rest, **inner}
        return config

    def number(self, *names: str) -> int | None:
        """The first of these fields of the configuration that is a positive whole number."""
        return None if self.config is None else number_in(self.config, *names)

    @property
    def is_mla(self) -> bool | None:
        """Whether the model keeps latent KV; None where its configuration is not known."""
        return None if self.config is None else bool(self.config.get("kv_lora_rank"))

    # -- degrees and version ---------------------------------------------------------------

    @cached_property
    def own_command(self) -> bool:
        """Whether the engine is started by a command of the user's own, so that nothing of the
        platform's choosing holds."""
        engine = self.catalogue.engines.get(self.role.engine)
        custom = self.mode is None or not self.mode.injects
        return self.role.engine == CUSTOM or (
            custom and (self.role.run_command is not None or engine is None)
        )

    def degree(self, name: str) -> int | None:
        """A parallel degree in effect; None where it is not a plain number or not known.

        Without any degree written all of a member's accelerators are one tensor group.
        """
        found = self.written(f"{name}_parallel")
        if found is not None:
            return _whole(found.value)
        if self.own_command:
            return None
        if name != "tensor" or any(map(self._is_written, OTHER_DEGREES)):
            return 1
        return max(self.role.width, 1)

    def _is_written(self, name: str) -> bool:
        found = self.written(f"{name}_parallel")
        try:
            return found is not None and int(found.value or "") is not None
        except ValueError:
            return False

    @cached_property
    def version(self) -> Version | None:
        """The engine version: pinned and without an image of its own, or the one that every
        eligible host was found to have; None otherwise."""
        if self.role.image:
            return None
        texts = [self.role.engine_version] if self.role.engine_version else self.installed
        if len(set(texts)) != 1:
            return None
        try:
            return Version(texts[0])
        except InvalidVersion:
            return None

    @cached_property
    def installed(self) -> list[str]:
        """Versions found on every host the role may run on; empty unless all are known."""
        hosts, program = self.known.eligible(self.role), self.program
        found = [self.known.versions.get((h, program), "") for h in hosts]
        return found if found and all(found) else []

    @property
    def program(self) -> str:
        """The engine's program name."""
        engine = self.catalogue.engines.get(self.role.engine)
        return engine.program if engine is not None else self.role.engine


def overlaid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` merged over `base`, object by object."""
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        result[key] = overlaid(inner, value) if both else value  # type: ignore[arg-type]
    return result


def same_json(first: object, second: object) -> bool:
    """Whether two JSON values are equal, `1` and `1.0` and `true` kept apart as JSON does."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _object(value: object) -> bool:
    return isinstance(value, Mapping)


def _whole(text: str | None) -> int | None:
    try:
        found = int(text) if text is not None else 0
    except ValueError:
        return None
    return found if found > 0 else None
