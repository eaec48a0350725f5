"""What leads to a host is a name, and never words for a shell of the ssh configuration."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from backend.domain.host import Host


@pytest.mark.parametrize("field", ["address", "user", "jump"])
@pytest.mark.parametrize(
    "value", ["$(id)", "a;id", "a b", "-oProxyCommand=id", "a\nb", "`id`", "a|b"]
)
def test_words_for_a_shell_are_refused(field: str, value: str) -> None:
    with pytest.raises(ValidationError, match="shell characters"):
        Host.model_validate({"name": "h1", "address": "h1", field: value})


@pytest.mark.parametrize(
    "value", ["gpu-1.example", "10.0.0.1", "fe80::1%eth0", "me@door:22,b", "D\\me", ""]
)
def test_names_are_taken(value: str) -> None:
    found = Host.model_validate({"name": "h1", "address": value, "user": value, "jump": value})
    assert (found.address, found.user, found.jump) == (value,) * 3
