"""What routes take from a request."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import Depends, Request

from backend.services.backend import Backend


def backend_of(request: Request) -> Backend:
    """The backend that this application serves."""
    backend: Backend = request.app.state.backend
    return backend


def actor_of(request: Request) -> str:
    """Who asks: the local user's name, which the client sends over the owner's own socket."""
    return request.headers.get("x-pdtui-actor") or f"uid {os.getuid()}"


TheBackend = Annotated[Backend, Depends(backend_of)]
Actor = Annotated[str, Depends(actor_of)]
