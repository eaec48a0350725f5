"""Reads the mode catalogue, built-in and the user's own, and names the line of every mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from backend.domain import yamlread
from backend.domain.catalogue import complaints
from backend.domain.errors import Invalid, Problem
from backend.domain.metrics_recipe import SeriesRecipe
from backend.domain.mode import (
    Catalogue,
    EngineRecipe,
    LayoutFacts,
    Mode,
    RouterRecipe,
    VendorRecipe,
    WorkerApi,
)
from backend.domain.yamlread import Keys

Model = TypeVar("Model", bound=BaseModel)
FORMAT = 1
SECTIONS = ("version", "layouts", "vendors", "engines", "routers", "apis", "series", "modes")
NAMED = SECTIONS[2:]


@dataclass
class _Source:
    """One parsed file: its plain data and the line each path is written on."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[Keys, int] = field(default_factory=dict)

    def problem(self, keys: Keys, reason: str) -> Problem:
        """What is wrong at `keys`, with the line of the nearest thing that is written."""
        near = keys
        while near and near not in self.lines:
            near = near[:-1]
        line = self.lines.get(near, 1)
        where = _dotted(keys)
        return Problem(
            rule="mode.catalogue",
            message=f"{self.path}:{line}: {where or 'the file'}: {reason}",
            path=where,
            remedy="Correct the line; docs/modes.md describes every field.",
            values={"file": str(self.path), "line": line, "reason": reason},
        )


def builtin_path() -> Path:
    """The catalogue that ships with the program."""
    import modes

    return Path(modes.__file__).with_name("pd-modes.yaml")


def load_catalogue(paths: Sequence[Path] | None = None) -> Catalogue:
    """The catalogue of `paths`, later files adding to and overriding earlier ones by name.

    None means the built-in file alone. A file that does not exist is skipped, save the first.
    Raises Invalid (`mode.catalogue`) naming file, line and reason of everything that is wrong.
    """
    paths = [builtin_path()] if paths is None else list(paths)
    sources = [_read(p) for i, p in enumerate(paths) if i == 0 or p.exists()]
    builder = _Builder()
    for index, source in enumerate(sources):
        builder.add(source, "built in" if index == 0 else str(source.path))
    return builder.finish()


class _Builder:
    """Collects sections over files, then builds the catalogue or raises all problems at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.raw: dict[str, dict[str, tuple[Any, _Source]]] = {s: {} for s in NAMED}
        self.origins: dict[str, str] = {}
        self.layouts = LayoutFacts()

    def add(self, source: _Source, origin: str) -> None:
        for key in source.data:
            if key not in SECTIONS:
                self.problems.append(
                    source.problem((key,), f"unknown section; there are {', '.join(SECTIONS)}")
                )
        if source.data.get("version") != FORMAT:
            self.problems.append(source.problem(("version",), f"must be {FORMAT}"))
        for section, entries in self.raw.items():
            found = source.data.get(section)
            found = {} if found is None else found
            if not isinstance(found, dict):
                self.problems.append(source.problem((section,), "must be a mapping of names"))
                continue
            for name, body in found.items():
                entries[name] = (self._extended(section, name, body, source), source)
                if section == "modes":
                    self.origins[name] = origin

        if "layouts" in source.data:
            found = self._validate(LayoutFacts, source.data["layouts"], source, ("layouts",))
            self.layouts = found or self.layouts

    def _extended(self, section: str, name: str, body: Any, source: _Source) -> Any:
        """`body` over the entry it `extends`, mapping by mapping; lists are replaced whole."""
        if not isinstance(body, dict) or "extends" not in body:
            return body
        base = body["extends"]
        if base not in self.raw[section]:
            known = ", ".join(self.raw[section]) or "none"
            reason = f"there is no {base!r} before it to extend; known: {known}"
            self.problems.append(source.problem((section, name, "extends"), reason))
            return body
        rest = {k: v for k, v in body.items() if k != "extends"}
        return _overlaid(self.raw[section][base][0], rest)

    def finish(self) -> Catalogue:
        vendors = self._all("vendors", VendorRecipe)
        engines = self._all("engines", EngineRecipe)
        series = self._all("series", SeriesRecipe)
        self._all("apis", WorkerApi)
        for name, (body, source) in self.raw["routers"].items():
            if isinstance(body, dict):
                body = {"program": name, "command": [], "membership_update": "manual", **body}
            self._validate(RouterRecipe, body, source, ("routers", name))
        if self.problems:
            raise Invalid(*self.problems)
        modes: dict[str, Mode] = {}
        for name, (body, source) in self.raw["modes"].items():
            mode = self._mode(name, body, source)
            if mode is not None:
                modes[name] = mode
        if self.problems:
            raise Invalid(*self.problems)
        catalogue = Catalogue.model_validate(
            {
                "modes": modes, "engines": engines, "vendors": vendors, "layouts": self.layouts,
                "series": series,
            }
        )  # fmt: skip
        for keys, reason in complaints(catalogue):
            section, name = str(keys[0]), str(keys[1])
            source = self.raw[section][name][1]
            self.problems.append(source.problem(keys, reason))
        if self.problems:
            raise Invalid(*self.problems)
        return catalogue

    def _all(self, section: str, model: type[BaseModel]) -> dict[str, Any]:
        built = {}
        for name, (body, source) in self.raw[section].items():
            found = self._validate(model, body, source, (section, name))
            if found is not None:
                built[name] = found
        return built

    def _mode(self, name: str, body: Any, source: _Source) -> Mode | None:
        keys: Keys = ("modes", name)
        if not isinstance(body, dict):
            self.problems.append(source.problem(keys, "must be a mapping"))
            return None
        router = body.get("router")
        if isinstance(router, dict):
            body = {**body, "router": self._router(router, source, (*keys, "router"))}
        full = {**body, "name": name, "origin": self.origins[name]}
        return self._validate(Mode, full, source, keys)

    def _router(self, router: dict[str, Any], source: _Source, keys: Keys) -> dict[str, Any]:
        """The mode's router over what is said of its program, with its API looked up."""
        program = router.get("program")
        base = self.raw["routers"].get(str(program), ({}, source))[0]
        merged = {"command": [], **(base if isinstance(base, dict) else {}), **router}
        api = merged.get("api")
        if isinstance(api, str):
            if api not in self.raw["apis"]:
                known = ", ".join(self.raw["apis"]) or "none"
                self.problems.append(
                    source.problem((*keys, "api"), f"there is no api {api!r}; known: {known}")
                )
                merged["api"] = None
            else:
                merged["api"] = self.raw["apis"][api][0]
        return merged

    def _validate(self, model: type[Model], body: Any, source: _Source, keys: Keys) -> Model | None:
        try:
            return model.model_validate(body)
        except ValidationError as error:
            for fault in error.errors():
                reason = fault["msg"].removeprefix("Value error, ")
                self.problems.append(source.problem((*keys, *fault["loc"]), reason))
            return None


def _read(path: Path) -> _Source:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, 1, str(error)) from error
    found = yamlread.read_all(text)
    for document in found:
        if document.mistake is not None:
            raise _unreadable(path, document.mistake.line, document.mistake.why)
    if len(found) > 1:
        raise _unreadable(path, found[1].line, "a second document begins here")
    if not found or not isinstance(found[0].data, dict):
        raise _unreadable(path, 1, "must be a mapping of sections: " + ", ".join(SECTIONS))
    return _Source(path, found[0].data, found[0].lines)


def _unreadable(path: Path, line: int, reason: str) -> Invalid:
    return Invalid(
        Problem(
            rule="mode.catalogue",
            message=f"{path}:{line}: {reason}",
            remedy="Correct the line; docs/modes.md describes every field.",
            values={"file": str(path), "line": line, "reason": reason},
        )
    )


def _dotted(keys: Keys) -> str:
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def _overlaid(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return base | {k: _overlaid(base.get(k), v) for k, v in over.items()}
