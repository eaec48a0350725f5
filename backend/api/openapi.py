"""The OpenAPI document: bodies, examples, errors and what a write has to carry, on every route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from backend.api.deps import ROLE, role_for
from backend.api.examples import REQUESTS
from backend.api.gate import READS
from backend.api.problems import MEDIA_TYPE
from backend.api.wire import ErrorBody
from backend.domain.errors import KINDS

EVERY = (400, 401, 403, 404, 405)
WRITES = (409, 412, 413, 415, 422, 428, 507)
BEYOND = (500, 502, 504)
"""A host that is asked on the way may fail or not answer; 500 would be a fault of ours."""
_REF = "#/components/schemas/{model}"
METHODS = ("get", "put", "post", "delete", "patch")

IDEMPOTENCY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Sent again with the same request within a day: the first answer, nothing done "
    "twice. With another request: refused. A fresh UUID for each new write does.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}
SECURITY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of `pdtui tokens add`: over TCP only. The Unix socket is its owner's "
    "alone, and asks for none.",
}


def operation_id(route: APIRoute) -> str:
    """The function's name: what generated clients call the operation."""
    return route.name


def describe(app: FastAPI) -> None:
    """Let `app.openapi()` give the whole document; it is made once."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    models: list[type[BaseModel]] = [ErrorBody, *(model for model, _ in REQUESTS.values())]
    _, extra = models_json_schema([(m, "validation") for m in models], ref_template=_REF)
    schemas = found["components"]["schemas"]
    for name, schema in extra.get("$defs", {}).items():
        schemas.setdefault(name, schema)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    found["components"]["securitySchemes"] = {"token": SECURITY}
    found["components"]["responses"] = {str(s): _error(s) for s in (*EVERY, *WRITES, *BEYOND)}
    found["security"] = [{"token": []}, {}]
    for path, methods in found["paths"].items():
        for method, about in methods.items():
            if method in METHODS:
                _complete(path, method, about)
    return found


def _complete(path: str, method: str, about: dict[str, Any]) -> None:
    write = method.upper() not in READS
    about["responses"].pop("422", None)
    for status in (*EVERY, *(WRITES if write else ()), *BEYOND):
        about["responses"].setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    about[ROLE] = role_for(method.upper(), about)  # FastAPI has put what the route says here
    if write:
        about.setdefault("parameters", []).append(IDEMPOTENCY)
    body = REQUESTS.get((path, method))
    if body is not None:
        model, example = body
        about["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": _REF.format(model=model.__name__)},
                    "example": example,
                }
            },
        }


def _error(status: int) -> dict[str, Any]:
    kinds = sorted(k for k, c in KINDS.items() if c.status == status)
    said = next((c.__doc__ for c in KINDS.values() if c.status == status), None) or "An error."
    return {
        "description": said.splitlines()[0],
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": _REF.format(model="ErrorBody")},
                "example": _example(status, kinds[0] if kinds else "internal"),
            }
        },
    }


def _example(status: int, kind: str) -> dict[str, Any]:
    problem = {
        "rule": "write.changed" if status == 412 else f"{kind}.example",
        "verdict": "refused",
        "path": "",
        "case": "",
        "values": {},
        "message": "the deployment chat was changed by someone else meanwhile; nothing was "
        "overwritten." if status == 412 else "what was found, and what it was compared with.",
        "remedy": "Read it again, and decide on what it is now."
        if status == 412
        else "What to do about it.",
    }  # fmt: skip
    return {
        "type": f"urn:pdtui:problem:{problem['rule']}",
        "title": "Precondition Failed" if status == 412 else "Error",
        "status": status,
        "detail": f"{problem['message']} {problem['remedy']}",
        "instance": "/v1/deployments/chat",
        "kind": kind,
        "problems": [problem],
    }
