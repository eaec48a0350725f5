"""A whole backend, and the API without a socket."""

from tests.backend.api.conftest import backend, http

__all__ = ["backend", "http"]
