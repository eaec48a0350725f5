"""Plain data to a document, with errors that name the field, what was found and what to write."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from backend.domain.deployment import Deployment
from backend.domain.errors import Invalid, Problem


def parse_deployment(data: object) -> Deployment:
    """The document in `data`. Raises Invalid with one Problem per field that is wrong."""
    if not isinstance(data, Mapping):
        raise Invalid.of(
            "structure.document",
            f"a deployment is a mapping with apiVersion, kind, metadata and spec; this is "
            f"{_said(data)}.",
            remedy="Start from the example in the README.",
        )
    try:
        return Deployment.model_validate(data)
    except ValidationError as error:
        raise Invalid(*(_problem(e, Deployment) for e in error.errors())) from None


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
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}."
        return Problem(
            rule="structure.unknown_field",
            path=path,
            message=f"there is no field {location[-1]!r} here (its value is {_said(found)}).",
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
    wanted = str(context.get("expected", ""))
    message = str(context["error"]) if "error" in context else error["msg"]
    return Problem(
        rule="structure.value",
        path=path,
        message=f"{_said(found)} does not do here: {message[0].lower()}{message[1:]}.",
        values={"found": _plain(found), "expected": wanted or message},
        remedy=f"Write {wanted}." if wanted else "Correct the value.",
    )


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


def _said(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(value: object) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else _said(value)
