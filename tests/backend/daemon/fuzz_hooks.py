"""What the fuzzer is told: hosts it adds lead nowhere but to this machine's closed port, and its
own token stays, since without it every later answer would be the same."""

from __future__ import annotations

from typing import Any

import schemathesis

OWN_TOKEN = "fuzz"


@schemathesis.hook.apply_to(method="PUT", path="/v1/hosts/{name}")
def map_body(_: Any, body: Any) -> Any:
    """A body with an address that answers at once, and never as an SSH server."""
    if isinstance(body, dict) and "address" in body:
        return {**body, "address": "127.0.0.1", "port": 1, "jump": None, "identity_files": []}
    return body


@schemathesis.hook.apply_to(method="DELETE", path="/v1/tokens/{name}")
def map_path_parameters(_: Any, parameters: Any) -> Any:
    """Any token's name but that of the fuzzer's own."""
    if parameters and parameters.get("name") == OWN_TOKEN:
        return {**parameters, "name": f"{OWN_TOKEN}-other"}
    return parameters
