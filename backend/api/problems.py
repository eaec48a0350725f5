"""Errors as RFC 9457 problem documents; `kind` and `problems` carry what our own clients read."""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import Match

from backend.api.wire import API_VERSION, ErrorBody
from backend.domain.documents import path_of
from backend.domain.errors import Invalid, NotFound, PdError, Problem, Unknown, WrongMethod
from backend.redaction import PROCESS

log = logging.getLogger(__name__)

METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
MEDIA_TYPE = "application/problem+json"


def problem_response(error: PdError, address: str) -> Response:
    """The answer that tells an error; `address` is the path that was asked for."""
    if error.status >= 500:
        log.warning("%s", error)
    body = ErrorBody(
        type=f"urn:pdtui:problem:{error.problem.rule}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=error.problem.sentence(),
        instance=address,
        kind=error.kind,
        problems=list(error.problems),
    )
    headers = {"WWW-Authenticate": 'Bearer realm="pdtui"'} if isinstance(error, Unknown) else None
    text = PROCESS.hide_values(body.model_dump_json())
    return Response(text, error.status, headers, media_type=MEDIA_TYPE)


async def explained(request: Request, error: Exception) -> Response:
    """An error of ours."""
    if not isinstance(error, PdError):
        raise error
    return problem_response(error, request.url.path)


async def unexpected(request: Request, error: Exception) -> Response:
    """Told like every other error; the traceback goes to the backend's log."""
    problem = Problem(
        rule="internal",
        message=f"the backend failed at this: {type(error).__name__}.",
        remedy="Look at backend.log in the state directory.",
    )
    return problem_response(PdError(problem), request.url.path)


async def malformed(request: Request, error: Exception) -> Response:
    """What does not fit the route's own description of its input."""
    if not isinstance(error, RequestValidationError):
        raise error
    problems = [
        Problem(
            rule="request.body" if e["loc"][0] == "body" else "request.parameter",
            path=path_of(e["loc"][1:]),
            message=f"the request is not understood here: {e['msg']}.",
            remedy=f"See /{API_VERSION}/openapi.json.",
        )
        for e in error.errors()
    ]
    return problem_response(Invalid(*problems), request.url.path)


def _methods_of(request: Request) -> str:
    """What the address takes: each of its methods is a route of its own, and knows no other."""
    asked = {"type": "http", "path": request.url.path, "root_path": "", "headers": []}
    return ", ".join(
        method
        for method in METHODS
        if any(r.matches({**asked, "method": method})[0] is Match.FULL for r in request.app.routes)
    )


async def unrouted(request: Request, error: Exception) -> Response:
    """An address or a method that is none of ours."""
    if not isinstance(error, HTTPException):
        raise error
    path, method = request.url.path, request.method
    if error.status_code == 405:
        allowed = _methods_of(request) or Headers(error.headers or {}).get("allow", "")
        wrong = WrongMethod.of(
            "request.method",
            f"{path} does not take {method}; it takes {allowed or 'other methods'}.",
            values={"method": method, "allowed": allowed},
            remedy=f"See /{API_VERSION}/openapi.json.",
        )
        answer = problem_response(wrong, path)
        answer.headers["Allow"] = allowed
        return answer
    if error.status_code == 404:
        return problem_response(
            NotFound.of(
                "request.address",
                f"nothing is at {path}.",
                values={"address": path},
                remedy=f"The addresses there are stand in /{API_VERSION}/openapi.json.",
            ),
            path,
        )
    return problem_response(Invalid.of("request.invalid", f"{error.detail}."), path)
