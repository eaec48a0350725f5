"""What leads to a host is a name, and never words for a shell of the ssh configuration."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from backend.domain.host import STORED, Host


@pytest.mark.parametrize("field", ["address", "user", "jump", "service_address"])
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


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("work_dir", "", "must name a folder"),
        ("work_dir", "/", "must name a folder"),
        ("work_dir", "a\nb", "control characters"),
        ("work_dir", "/data:1", "colon"),
        ("work_dir", "bad\udcff", "control characters"),
        ("work_dir", "~other/x", "own home"),
        ("kv_transfer_ifname", "eth0 eth1", "interface's name"),
        ("kv_transfer_ifname", "an-interface-too-long", "interface's name"),
        ("identity_files", ["/keys/\x1b[2J"], "control characters"),
        ("identity_files", [""], "is empty"),
        ("executables", {"vllm": "/opt\n/x"}, "control characters"),
        ("labels", {"rack": "a\tb"}, "control characters"),
    ],
)
def test_what_could_not_work_on_a_host_is_refused(field: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Host.model_validate({"name": "h1", "address": "h1", field: value})
    kept = Host.model_validate({"name": "h1", "address": "h1", field: value}, context=STORED)
    assert kept.name == "h1"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("work_dir", "a b'c\"$HOME`id`"),
        ("work_dir", "~/数据"),
        ("work_dir", "/data/pdtui/"),
        ("kv_transfer_ifname", "enp65s0f0.100"),
        ("labels", {"rack": ""}),
        ("executables", {"vllm": "/opt/my venv"}),
    ],
)
def test_what_is_only_odd_is_taken(field: str, value: object) -> None:
    found = Host.model_validate({"name": "h1", "address": "h1", field: value})
    assert found.model_dump()[field] == value
