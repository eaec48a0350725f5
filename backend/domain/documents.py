"""Plain data to a document, with errors that name the field, what was found and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from backend.domain.deployment import Deployment
from backend.domain.errors import Invalid, Problem
from backend.domain.references import misplaced
from backend.domain.secrets import is_secret

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
        known = _fields(model, location[:-1])
        near = _near(str(location[-1]), known)
        remedy = f"Did you mean {near!r}?" if near else f"Known here: {', '.join(known)}."
        return Problem(
            rule="structure.unknown_field",
            path=path,
            message=f"there is no field {location[-1]!r} here (its value is {_said(found, path)}).",
            values={"field": str(location[-1]), "known": known},
            remedy=remedy,
        )
    if kind == "missing":
        return Problem(
            rule="structure.missing_field",
            path=path,
            message="this field has no default and was not given.",
            values={"field": str(location[-1])},
            remedy=f"Add {location[-1]!r}.",
        )
    context = error.get("ctx") or {}
    wanted = str(context.get("expected", "")) or WANTED.get(kind, "").format_map(_Gaps(context))
    why = str(context.get("error") or error["msg"] or "it cannot be read").rstrip(".")
    message = f"{_said(found, path)} does not do here: {why[:1].lower()}{why[1:]}."
    if found == "":
        message = "nothing is written here."
    elif why.startswith(_said(found, path)):
        message = f"{why}."
    return Problem(
        rule="structure.value",
        path=path,
        message=message,
        values={"found": _plain(found, path), "expected": wanted or why},
        remedy=_remedy(kind, wanted, found, path),
    )


WANTED = {
    "string_type": "text", "string_too_short": "text of at least {min_length} characters",
    "int_type": "a whole number", "int_parsing": "a whole number",
    "int_from_float": "a whole number", "int_parsing_size": "a smaller number",
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number",
    "bool_type": "true or false", "bool_parsing": "true or false",
    "list_type": "a list", "tuple_type": "a list", "dict_type": "a mapping",
    "model_type": "a mapping", "model_attributes_type": "a mapping", "mapping_type": "a mapping",
    "greater_than_equal": "a number of at least {ge}", "greater_than": "a number above {gt}",
    "less_than_equal": "a number of at most {le}", "less_than": "a number below {lt}",
    "invalid_key": "names that are text",
}  # fmt: skip
"""What to write instead, by the kind of the validation error."""


class _Gaps(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "…"


def _remedy(kind: str, wanted: str, found: object, path: str) -> str:
    if kind == "string_type" and isinstance(found, int | float):
        if _hidden(path):
            return "Write it in quotes: YAML reads it as something else than text."
        text = str(found).lower() if isinstance(found, bool) else str(found)
        return f'Write it in quotes, "{text}": YAML reads it as something else than text.'
    if kind == "string_too_short" and found == "":
        return "Write some text."
    return f"Write {wanted}." if wanted else "Correct the value as the message says."


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
