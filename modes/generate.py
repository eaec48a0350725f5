"""Writes what follows from the catalogue: its JSON schema, and docs/modes.md.

`python -m modes.generate` writes both; `--check` fails when a file is not what would be written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from backend.adapters.recipes import load_catalogue
from backend.domain.metrics_recipe import SeriesRecipe
from backend.domain.mode import (
    CacheRecipe,
    Catalogue,
    EngineRecipe,
    LayoutFacts,
    Mode,
    RouterRecipe,
    VendorRecipe,
    WorkerApi,
)
from backend.domain.template import compact

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "modes" / "schema.json"
DOCS = ROOT / "docs" / "modes.md"
GUIDE = Path(__file__).with_name("guide.md")


def schema() -> dict[str, Any]:
    """The JSON schema of a catalogue file. An entry that `extends` another may leave anything out,
    and a mode's router may leave out what its program says."""
    sections: dict[str, type[BaseModel]] = {
        "vendors": VendorRecipe,
        "engines": EngineRecipe,
        "routers": RouterRecipe,
        "apis": WorkerApi,
        "series": SeriesRecipe,
        "modes": Mode,
    }
    defs: dict[str, Any] = {}
    properties: dict[str, Any] = {"version": {"const": 1}}
    for name, model in sections.items():
        body = model.model_json_schema(ref_template="#/$defs/{model}")
        defs |= body.pop("$defs", {})
        defs[model.__name__] = _relaxed(body)
        entry = {"$ref": f"#/$defs/{model.__name__}"}
        properties[name] = {"type": "object", "additionalProperties": entry}
    properties["layouts"] = LayoutFacts.model_json_schema()
    router = defs["RouterRecipe"]["properties"]
    router["api"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/WorkerApi"}]}
    defs["Mode"]["properties"].pop("origin")
    defs["Mode"]["properties"].pop("name")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pdtui mode catalogue",
        "type": "object",
        "required": ["version"],
        "additionalProperties": False,
        "properties": properties,
        "$defs": dict(sorted(defs.items())),
    }


def _relaxed(body: dict[str, Any]) -> dict[str, Any]:
    body.pop("required", None)
    body["properties"]["extends"] = {"type": "string"}
    return body


def document(catalogue: Catalogue) -> str:
    """docs/modes.md: a table of all modes, one section each, then how to add one."""
    lines = [
        "# Modes",
        "",
        "<!-- Written from modes/ by `make docs`; do not edit. -->",
        "",
        "A mode is one recipe: an engine, a KV connector and a router. Choosing it decides the",
        "connector, the handshake's variables and the ports; none of them is a field of a form.",
        "",
        *_overview(catalogue),
    ]
    for mode in catalogue.modes.values():
        lines += ["", f"## {mode.name}", "", *_section(catalogue, mode)]
    return "\n".join([*lines, "", GUIDE.read_text(encoding="utf-8").rstrip(), ""])


def _overview(catalogue: Catalogue) -> Iterator[str]:
    yield "| mode | engine | accelerators | transport | membership | tensor parallel | versions |"
    yield "|---|---|---|---|---|---|---|"
    for mode in catalogue.modes.values():
        cells = [
            f"[{mode.name}](#{mode.name})",
            ", ".join(mode.engines) or "any",
            mode.vendor or "any",
            mode.transport or "none",
            mode.router.membership_update,
            mode.pairing.tensor_parallel.replace(">=", " >= "),
            mode.versions.range if mode.versions else "any",
        ]
        yield "| " + " | ".join(cells) + " |"


def _section(catalogue: Catalogue, mode: Mode) -> Iterator[str]:
    yield mode.summary
    if mode.versions and mode.versions.reason:
        yield ""
        yield f"Versions {mode.versions.range}: {mode.versions.reason}."
    if mode.lease:
        value = mode.lease.value_s or mode.lease.engine_default_s
        own = "" if mode.lease.value_s else ", the engine's own default"
        yield ""
        yield f"Prefill keeps KV that nobody fetched for {value} s{own} (`{mode.lease.knob}`)."
    if mode.variants:
        named = ", ".join(f"`{name}` for {layout}" for layout, name in mode.variants.items())
        yield ""
        yield f"Connector by the model's KV layout: {named}; unknown takes {mode.default_variant}."
    for role, recipe in mode.roles.items():
        yield ""
        yield f"### {mode.name}: {role}"
        yield ""
        for band in recipe.bands:
            yield f"- ports `{band.name}`: {_width(band.width)}, told through {band.channel}"
        for key, text in recipe.env.items():
            yield f"- env `{key}={text}`"
        for found in recipe.host_files:
            yield f"- file of the host `{found.path}`: {found.reason}"
        if recipe.args:
            yield f"- arguments `{' '.join(recipe.args)}`"
        if recipe.connector is not None:
            yield f"- connector `{compact(recipe.connector)}`"
    if mode.injects:
        yield from _router(mode)
        yield from _caches(mode)


def _width(width: int | str) -> str:
    return {
        "data_parallel_size": "one a data-parallel rank",
        "accelerator_count": "one a chip",
    }.get(str(width), str(width))


def _router(mode: Mode) -> Iterator[str]:
    router = mode.router
    yield ""
    yield f"### {mode.name}: router"
    yield ""
    yield f"`{' '.join([*router.command, *router.args])}`"
    yield ""
    for role, template in router.peers.items():
        yield f"- each {role} peer: `{' '.join(template)}`"
    yield f"- membership: {router.membership_update}"
    yield f"- policies in effect: {router.policies}"
    yield ""
    yield "| adjustable | passed | values |"
    yield "|---|---|---|"
    for tunable in router.tunables:
        bounds = ", ".join(tunable.options) or _bounds(tunable.minimum, tunable.maximum)
        passed = "" if tunable.default is None else f"`{tunable.default}`"
        note = f"; {tunable.note}" if tunable.note else ""
        yield f"| `{tunable.flag}` | {passed} | {bounds}{note} |"


def _bounds(minimum: float | None, maximum: float | None) -> str:
    if maximum is None:
        return "" if minimum is None else f"at least {minimum:g}"
    return f"{minimum or 0:g} to {maximum:g}"


def _caches(mode: Mode) -> Iterator[str]:
    if mode.cache is None:
        return
    recipes: list[tuple[str, CacheRecipe]] = []
    if mode.cache.in_process:
        recipes.append(("in process", mode.cache.in_process))
    recipes += [(f"service, {name}", found) for name, found in mode.cache.service.items()]
    yield ""
    yield f"### {mode.name}: extended cache"
    yield ""
    yield "| cache | roles | versions | joins as |"
    yield "|---|---|---|---|"
    for name, recipe in recipes:
        children = {str(a.connector["kv_connector"]) for a in recipe.roles.values() if a.connector}
        joins = ", ".join(f"`{c}`" for c in sorted(children)) or "arguments"
        versions = recipe.versions.range if recipe.versions else "any"
        yield f"| {name} | {', '.join(recipe.roles)} | {versions} | {joins} |"
    for name, recipe in recipes:
        if recipe.note:
            yield ""
            yield f"{name[0].upper()}{name[1:]}: {recipe.note}."


def outputs() -> dict[Path, str]:
    """Every generated file and its text."""
    return {
        SCHEMA: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n",
        DOCS: document(load_catalogue()),
    }


def stale() -> list[Path]:
    """Generated files that are not what would be written now."""
    return [
        path
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(argv: list[str]) -> int:
    """Write, or with `--check` only compare; 1 when something was stale."""
    old = stale()
    if "--check" in argv:
        for path in old:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run python -m modes.generate\n")
        return 1 if old else 0
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
