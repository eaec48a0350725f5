"""The HTTP API: thin routes over the services; errors as bodies, changes as one event stream."""

from __future__ import annotations

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from backend.api.deps import authorised
from backend.api.gate import Gate
from backend.api.openapi import describe, operation_id
from backend.api.problems import explained, malformed, unexpected, unrouted
from backend.api.routes_access import router as access
from backend.api.routes_adoption import router as adoption
from backend.api.routes_advice import router as advice
from backend.api.routes_caches import router as caches
from backend.api.routes_choices import router as choices
from backend.api.routes_diagnosis import router as diagnosis
from backend.api.routes_groups import router as groups
from backend.api.routes_history import router as history
from backend.api.routes_hosts import router as hosts
from backend.api.routes_instances import router as instances
from backend.api.routes_metrics import own as own_metrics
from backend.api.routes_metrics import router as metrics
from backend.api.routes_plans import router as plans
from backend.api.routes_system import open_router
from backend.api.routes_system import router as system
from backend.api.wire import API_VERSION
from backend.domain.errors import PdError
from backend.services.backend import Backend

ROUTERS = (
    groups, instances, adoption, history, diagnosis, advice, caches, choices, hosts, metrics, plans,
    system, access,
)  # fmt: skip


def create_app(backend: Backend, version: str) -> FastAPI:
    """The application that serves one backend."""
    app = FastAPI(
        title="pdtui",
        version=version,
        description="Deploy, scale and restart prefill/decode disaggregated groups.",
        openapi_url=f"/{API_VERSION}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
    )
    app.state.backend = backend
    app.state.version = version
    for router in ROUTERS:
        app.include_router(router, prefix=f"/{API_VERSION}", dependencies=[Depends(authorised)])
    app.include_router(own_metrics, dependencies=[Depends(authorised)])
    app.include_router(open_router)
    app.add_exception_handler(PdError, explained)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, unrouted)
    app.add_exception_handler(Exception, unexpected)
    app.add_middleware(Gate, backend=backend)
    describe(app)
    return app
