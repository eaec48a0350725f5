"""What the fuzzer is told: hosts it adds lead nowhere but to this machine's closed port."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook.apply_to(method="PUT", path="/v1/hosts/{name}")
def map_body(_: Any, body: Any) -> Any:
    """A body with an address that answers at once, and never as an SSH server."""
    if isinstance(body, dict) and "address" in body:
        return {**body, "address": "127.0.0.1", "port": 1, "jump": None, "identity_files": []}
    return body
