"""The HTTP API: thin routes over the services; errors as bodies, changes as one event stream."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from backend.api.routes_adoption import router as adoption
from backend.api.routes_caches import router as caches
from backend.api.routes_choices import router as choices
from backend.api.routes_groups import router as groups
from backend.api.routes_history import router as history
from backend.api.routes_hosts import router as hosts
from backend.api.routes_metrics import router as metrics
from backend.api.routes_system import router as system
from backend.api.wire import API_VERSION, ErrorBody
from backend.domain.documents import path_of
from backend.domain.errors import Denied, Invalid, PdError, Problem
from backend.services.backend import Backend

log = logging.getLogger(__name__)

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "pdtui"})
"""Host headers that our own clients send over the socket."""


def create_app(backend: Backend, version: str) -> FastAPI:
    """The application that serves one backend."""
    app = FastAPI(
        title="pdtui",
        version=version,
        description="Deploy, scale and restart prefill/decode disaggregated groups.",
        openapi_url=f"/{API_VERSION}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.backend = backend
    app.state.version = version
    app.include_router(groups, prefix=f"/{API_VERSION}")
    app.include_router(adoption, prefix=f"/{API_VERSION}")
    app.include_router(history, prefix=f"/{API_VERSION}")
    app.include_router(caches, prefix=f"/{API_VERSION}")
    app.include_router(choices, prefix=f"/{API_VERSION}")
    app.include_router(hosts, prefix=f"/{API_VERSION}")
    app.include_router(metrics, prefix=f"/{API_VERSION}")
    app.include_router(system, prefix=f"/{API_VERSION}")
    app.add_exception_handler(PdError, _explained)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(Exception, _unexpected)
    app.middleware("http")(_only_ours)
    return app


async def _explained(_: Request, error: Exception) -> Response:
    if not isinstance(error, PdError):
        raise error
    if error.status >= 500:
        log.warning("%s", error)
    body = ErrorBody(kind=error.kind, problems=list(error.problems))
    return JSONResponse(body.model_dump(mode="json"), status_code=error.status)


async def _unexpected(_: Request, error: Exception) -> Response:
    """Told like every other error; the traceback goes to the backend's log."""
    problem = Problem(
        rule="internal",
        message=f"the backend failed at this: {type(error).__name__}: {error}.",
        remedy="Look at backend.log in the state directory.",
    )
    body = ErrorBody(kind=PdError.kind, problems=[problem])
    return JSONResponse(body.model_dump(mode="json"), status_code=PdError.status)


async def _malformed(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    problems = [
        Problem(
            rule="request.body",
            path=path_of(e["loc"][1:]),
            message=f"the request is not understood here: {e['msg']}.",
            remedy=f"See /{API_VERSION}/openapi.json.",
        )
        for e in error.errors()
    ]
    return await _explained(request, Invalid(*problems))


async def _only_ours(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """A browser's page must not reach the backend: foreign Host and Origin are refused."""
    host = request.headers.get("host", "").rsplit(":", 1)[0]
    if host not in LOCAL_NAMES or "origin" in request.headers:
        error = Denied.of(
            "request.foreign",
            f"a request with Host {host!r} or from a web page is not answered here.",
            values={"host": host, "origin": request.headers.get("origin")},
            remedy="Use the pdtui command, or curl with --unix-socket and http://localhost/.",
        )
        return await _explained(request, error)
    return await call_next(request)
