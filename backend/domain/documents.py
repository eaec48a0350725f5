"""Plain data to a document, with errors that name the field, what was found and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from backend.domain.deployment import Deployment
from backend.domain.errors import Invalid, Problem
from backend.domain.references import misplaced
from backend.domain.rules.words import TOLD
from backend.domain.secrets import is_secret
from backend.domain.telling import TEXT, Said, plainly, said, told

LONGEST_TEXT = 128 * 1024 - 1
"""Bytes of one argument or environment entry that Linux hands to a program."""


def parse_deployment(data: object) -> Deployment:
    """The document in `data`. Raises Invalid with one Problem per field that is wrong."""
    if not isinstance(data, Mapping):
        raise Invalid.of(
            "structure.document",
            f"a deployment is a mapping with apiVersion, kind, metadata and spec; this is "
            f"{_said(data)}.",
            remedy="Start from the example in the README.",
        )
    refuse_unfit(data)
    try:
        return Deployment.model_validate(data)
    except ValidationError as error:
        raise Invalid(*(_problem(e, Deployment) for e in error.errors())) from None


def refuse_unfit(data: object) -> None:
    """Raises Invalid for every text that no process can be started with (`structure.text`) and
    every reference to a value kept elsewhere where none is looked up (`structure.reference`)."""
    unfit = (*_unfit(data, (), set()), *_misplaced(data))
    if unfit:
        raise Invalid(*unfit)


def _unfit(value: object, at: tuple[int | str, ...], seen: set[int]) -> Iterator[Problem]:
    """Text that no process can be started with: NUL, half a character, or longer than one argument
    may be (Linux: MAX_ARG_STRLEN)."""
    if isinstance(value, Mapping | list | tuple):
        if id(value) in seen:  # shared by aliases, or holding itself
            return
        seen.add(id(value))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _unfit(key, at, seen)
            yield from _unfit(inner, (*at, str(key)), seen)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _unfit(inner, (*at, number), seen)
    elif isinstance(value, str):
        why = _why_unfit(value)
        if why:
            yield Problem(
                rule="structure.text",
                path=path_of(at),
                message=f"this text {why}, so no process can be started with it.",
                values={"characters": len(value)},
                remedy="Correct the text; put long content into a file on the hosts.",
            )


def _misplaced(data: object) -> Iterator[Problem]:
    for at, reference in misplaced(data):
        in_env = at[-2:-1] == ("env",)
        yield Problem(
            rule="structure.reference",
            case="quoted" if in_env else "elsewhere",
            path=path_of(at),
            message=f"{reference} is a text here, so the engine would be given these very words."
            if in_env
            else f"{reference} stands where no reference is looked up; only values of env are.",
            values={"reference": reference},
            remedy="Take away the quotes around it."
            if in_env
            else "Name a variable under env and give it the reference there, without quotes.",
        )


def _why_unfit(text: str) -> str:
    if "\0" in text:
        return f"holds a NUL character at position {text.index(chr(0))}"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "holds half of a character (a lone surrogate)"
    size = len(text.encode())
    return f"is {size} bytes long, more than {LONGEST_TEXT}" if size > LONGEST_TEXT else ""


def explain(error: ValidationError, model: type[BaseModel]) -> Invalid:
    """A model's validation errors as problems of ours."""
    return Invalid(*(_problem(e, model) for e in error.errors()))


def path_of(location: Sequence[int | str]) -> str:
    """`("spec", "parameters", 3)` as `spec.parameters[3]`."""
    out = ""
    for part in location:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else str(part))
    return out


def _problem(error: Any, model: type[BaseModel]) -> Problem:
    location = tuple(error["loc"])
    path, found, kind = path_of(location), error.get("input"), error["type"]
    if kind == "extra_forbidden":
        return _unknown(path, location, found, model)
    if kind == "missing":
        field = str(location[-1])
        message, remedy = said("structure.missing"), said("structure.missing.do", field=repr(field))
        return _told("structure.missing_field", path, message, remedy, field=field)
    context = {k: v for k, v in (error.get("ctx") or {}).items() if k != "error"}
    want = _want(kind, context)
    why = str((error.get("ctx") or {}).get("error") or error["msg"] or "it cannot be read")
    why = why.rstrip(".")
    seen = _said(found, path)
    if found == "":
        message = said("structure.empty")
    elif path == "metadata.name" and why.startswith(seen):
        message = said("structure.name", found=seen)
    elif why.startswith(seen):
        message = plainly(f"{why}.")
    elif want is not None:
        message = said("structure.unfit", found=seen, want=want)
    else:
        message = said("structure.unfit.why", found=seen, why=f"{why[:1].lower()}{why[1:]}")
    remedy = _remedy(kind, want, found, path)
    expected = told(want, "en") if want else why
    return _told("structure.value", path, message, remedy, found=_plain(found, path),
                 expected=expected)  # fmt: skip


def _unknown(
    path: str, location: tuple[int | str, ...], found: object, model: type[BaseModel]
) -> Problem:
    field, known = str(location[-1]), _fields(model, location[:-1])
    near = _near(field, known)
    if near:
        remedy = said("structure.unknown.meant", near=repr(near))
    else:
        remedy = said("structure.unknown.known", known=list(known))
    message = said("structure.unknown", field=repr(location[-1]), found=_said(found, path))
    return _told("structure.unknown_field", path, message, remedy, field=field, known=known)


def _told(rule: str, path: str, message: Said, remedy: Said, **values: Any) -> Problem:
    words = [one.model_dump(mode="json") for one in (message, remedy)]
    return Problem(
        rule=rule, path=path, message=told(message, "en"), remedy=told(remedy, "en"),
        values={**values, TOLD: words},
    )  # fmt: skip


def _want(kind: str, context: Mapping[str, Any]) -> Said | None:
    """What to write instead; None where only the error's own words say it."""
    if "expected" in context:
        others, _, last = str(context["expected"]).rpartition(" or ")
        if others:
            return said("structure.want.choices", others=others, last=last)
        return said("structure.want.choice", expected=last)
    known = f"structure.want.{kind}" in TEXT
    return said(f"structure.want.{kind}", **context) if known else None


def _remedy(kind: str, want: Said | None, found: object, path: str) -> Said:
    if kind == "string_type" and isinstance(found, int | float):
        if _hidden(path):
            return said("structure.do.quote.hidden")
        text = str(found).lower() if isinstance(found, bool) else str(found)
        return said("structure.do.quote", text=text)
    if kind == "string_too_short" and found == "":
        return said("structure.do.text")
    return said("structure.do", want=want) if want else said("structure.do.said")


def _near(name: str, known: Sequence[str]) -> str:
    """The field that was meant, however its words were joined; empty when none is near."""
    plain = {_flat(k): k for k in known}
    found = difflib.get_close_matches(_flat(name), list(plain), n=1, cutoff=0.7)
    return plain[found[0]] if found else ""


def _flat(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _fields(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Names of the fields at `location` inside `model`, as a document spells them."""
    at: type[BaseModel] | None = model
    for part in location:
        field = at.model_fields.get(str(part)) if at is not None else None
        if field is not None:
            at = _model_in(field.annotation)
    return [f.alias or n for n, f in at.model_fields.items()] if at is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((m for a in get_args(annotation) if (m := _model_in(a)) is not None), None)


def _hidden(path: str) -> bool:
    """Whether the value there may be a secret: by its name, or as a whole environment."""
    last = path.rpartition(".")[2]
    return last == "env" or is_secret(last)


def _said(value: object, path: str = "") -> str:
    if isinstance(value, Mapping | list):
        return f"a {'mapping' if isinstance(value, Mapping) else 'list'} of {len(value)}"
    if _hidden(path):
        return "(secret)"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(value: object, path: str) -> Any:
    if not _hidden(path) and (value is None or isinstance(value, str | int | bool)):
        return value
    return _said(value, path)
