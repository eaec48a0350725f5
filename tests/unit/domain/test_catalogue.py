"""The built-in catalogue, users' own, and the line of every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backend.adapters.recipes import builtin_path, load_catalogue
from backend.domain.errors import Invalid, NotFound
from modes import generate

NIXL_PREFILL = "      prefill:\n        bands: &nixl_bands"
BUILTIN = builtin_path().read_text(encoding="utf-8")


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "modes.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def line_of(text: str, needle: str) -> int:
    """The line number of the first line that holds `needle`."""
    return next(i for i, row in enumerate(text.splitlines(), 1) if needle in row)


def broken(tmp_path: Path, old: str, new: str) -> tuple[Invalid, str]:
    """The error of the built-in catalogue with one passage changed, and the changed text."""
    assert BUILTIN.count(old) >= 1, old
    text = BUILTIN.replace(old, new, 1)
    path = tmp_path / "pd-modes.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Invalid) as caught:
        load_catalogue([path])
    return caught.value, text


def test_six_modes_and_their_order(kit: Any) -> None:
    assert list(kit.catalogue.modes) == [
        "vllm-nixl", "vllm-mooncake", "sglang-mooncake", "sglang-nixl", "vllm-ascend-mooncake",
        "custom",
    ]  # fmt: skip
    assert {m.origin for m in kit.catalogue.modes.values()} == {"built in"}


def test_facts_that_must_not_drift(kit: Any) -> None:
    modes = kit.catalogue.modes
    assert modes["sglang-mooncake"].router == modes["sglang-nixl"].router
    nixl, ascend = modes["vllm-nixl"].router, modes["vllm-ascend-mooncake"].router
    assert nixl.model_copy(update={"tunables": ()}) == ascend.model_copy(update={"tunables": ()})
    assert not any("policy" in t.flag for t in ascend.tunables if t.default is not None)
    directions = {n: m.pairing.tensor_parallel for n, m in modes.items()}
    assert directions.pop("vllm-ascend-mooncake") == "prefill>=decode"
    assert directions.pop("custom") == "any"
    assert set(directions.values()) == {"decode>=prefill"}
    for mode in modes.values():
        if mode.injects:
            breaker = next(t for t in mode.router.tunables if t.flag == "--cb-failure-threshold")
            assert breaker.default == 10


def test_an_unknown_mode_names_those_there_are(kit: Any) -> None:
    with pytest.raises(NotFound) as caught:
        kit.catalogue.mode("vllm-nixel")
    assert "vllm-nixl" in caught.value.problem.remedy


@pytest.mark.parametrize(
    ("old", "new", "needle", "reason"),
    [
        ("    transport: NIXL\n", "    transprot: NIXL\n", "transprot", "not permitted"),
        ("    network: data\n", "    network: fast\n", "network: fast", "'data', 'control'"),
        ('range: ">=0.27.1"', 'range: "about 0.27"', "about 0.27", "no version range"),
        ("      api: vllm-igw\n", "      api: vllm-gw\n", "api: vllm-gw", "no api 'vllm-gw'"),
        ("    engines: [vllm]\n", "    engines: [vlm]\n", "engines: [vlm]", "no engine 'vlm'"),
        ("      engine_default_s: 30\n", "      engine_default_s: soon\n", "soon", "integer"),
        ("    key: url\n", "    key: name\n", "key: name", "'url' or 'id'"),
        ("    stop_grace_s: 190", "    stop_grace_s: -1", "stop_grace_s: -1", "greater than 0"),
        ("    health_path: /health\n    metrics_band", "    healt_path: /h\n    metrics_band",
         "healt_path", "not permitted"),
        ("      fold_name: MultiConnector\n", "", "&kv_transfer_config", "required"),
        ("version: 1\n", "version: 9\n", "version: 9", "must be 1"),
        ("layouts:\n", "layout:\n", "layout:\n  nested", "unknown section"),
        ("VLLM_NIXL_SIDE_CHANNEL_PORT: \"{{ports.kv_side_channel}}\"",
         "VLLM_NIXL_SIDE_CHANNEL_PORT: \"5600\"", "&nixl_bands", "is not used in env"),
        ("UCX_NET_DEVICES: \"{{net_device}}\"\n        connector", "X: y\n        connector",
         "network: data", "net_device is not used"),
        ("VLLM_NIXL_SIDE_CHANNEL_HOST: \"{{host_ip}}\"",
         "VLLM_NIXL_SIDE_CHANNEL_HOST: \"{{ host_ip }}\"", NIXL_PREFILL, "no spaces"),
        ("VLLM_NIXL_SIDE_CHANNEL_HOST: \"{{host_ip}}\"",
         "VLLM_NIXL_SIDE_CHANNEL_HOST: \"{{peer.ip}}\"", NIXL_PREFILL, "is a router's"),
        ("VLLM_NIXL_SIDE_CHANNEL_HOST: \"{{host_ip}}\"",
         "VLLM_NIXL_SIDE_CHANNEL_HOST: \"{{ports.other}}\"", "bands", "no band 'other'"),
        ("    requires_args: [--enable-igw]", "    requires_args: [--enable-gw]",
         "args: &vllm_igw_args", "the api needs --enable-gw"),
        ("    vendor: nvidia\n", "", "vllm-nixl:", "declares it"),
        ("    default_variant: hybrid ", "    default_variant: standrad ", "standrad",
         "'standard' or 'hybrid'"),
        ("[--prefill, \"{{peer.url}}\", \"{{peer.ports.bootstrap}}\"]\n        decode: [--decode, "
         "\"{{peer.url}}\"]\n      tunables:\n        - flag: --prefill-policy\n          default: "
         "cache_aware\n          options: &v",
         "[--prefill, \"{{peer.url}}\", \"{{peer.ports.boot}}\"]\n        decode: [--decode, "
         "\"{{peer.url}}\"]\n      tunables:\n        - flag: --prefill-policy\n          default: "
         "cache_aware\n          options: &v",
         "{{peer.ports.boot}}", "no band 'boot'"),
        ("          default: round_robin\n          options: *vllm_policies",
         "          default: best\n          options: *vllm_policies",
         "flag: --decode-policy", "not among the options"),
        ("      membership_update: manual\n", "      membership_update: restart\n",
         "membership_update: restart\n      health", "can only be manual"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_file_line_and_reason(
    tmp_path: Path, old: str, new: str, needle: str, reason: str
) -> None:
    error, text = broken(tmp_path, old, new)
    at = text.index(needle) if "\n" in needle else -1
    line = text[:at].count("\n") + 1 if at >= 0 else line_of(text, needle)
    found = [p for p in error.problems if reason in p.message]
    assert found, [p.message for p in error.problems]
    assert found[0].rule == "mode.catalogue"
    assert line in {p.values["line"] for p in found}, (line, [p.message for p in found])
    assert str(tmp_path / "pd-modes.yaml") in found[0].message


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("version: 1\nmodes: {a: [\n", 3, ""),
        ("- 1\n", 1, "mapping of sections"),
        ("version: 1\nmodes:\n  a: {title: x}\n  a: {title: y}\n", 4, "written twice"),
        ("version: 1\nmodes:\n  1: {}\n", 3, "must be text"),
        ("version: 1\nmodes: []\n", 2, "mapping of names"),
        ("version: 1\nmodes:\n  a: 3\n", 3, "must be a mapping"),
        ("version: 1\nmodes:\n  a:\n    extends: nothing\n", 4, "no 'nothing' before it"),
        ("version: 1\nmodes:\n  a: !!python/object:os.system {}\n", 3, ""),
        ("version: 1\nmodes: {a: &x {b: *x}}\n", 2, "contains itself"),
        ("", 1, "mapping of sections"),
    ],
)
def test_unreadable_files(own: Callable[[str], Path], text: str, line: int, reason: str) -> None:
    path = own(text)
    with pytest.raises(Invalid) as caught:
        load_catalogue([builtin_path(), path])
    found = [p for p in caught.value.problems if reason in p.message]
    assert found
    assert re.search(rf"{re.escape(str(path))}:{line}: ", found[0].message), found[0].message


def test_not_utf8_and_missing(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    with pytest.raises(Invalid, match=re.escape(str(path))):
        load_catalogue([path])
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(Invalid, match=re.escape(str(path))):
        load_catalogue([builtin_path(), path])


def test_a_users_file_that_is_not_there_is_no_mistake(tmp_path: Path, kit: Any) -> None:
    assert load_catalogue([builtin_path(), tmp_path / "modes.yaml"]) == kit.catalogue


def test_a_users_mode_extends_a_built_in_one(own: Callable[[str], Path], kit: Any) -> None:
    path = own(
        "version: 1\n"
        "modes:\n"
        "  patient:\n"
        "    extends: vllm-nixl\n"
        "    title: Patient\n"
        "    lease: {value_s: 600}\n"
    )
    found = load_catalogue([builtin_path(), path])
    mode, base = found.mode("patient"), kit.catalogue.mode("vllm-nixl")
    assert (mode.title, mode.origin, mode.name) == ("Patient", str(path), "patient")
    assert mode.lease is not None
    assert (mode.lease.value_s, mode.lease.knob) == (600, base.lease.knob)
    assert mode.router == base.router
    assert found.mode("vllm-nixl") == base


def test_a_users_mode_of_the_same_name_takes_its_place(own: Callable[[str], Path]) -> None:
    path = own("version: 1\nmodes:\n  vllm-nixl: {extends: vllm-nixl, preferred: false}\n")
    found = load_catalogue([builtin_path(), path]).mode("vllm-nixl")
    assert (found.preferred, found.origin) == (False, str(path))


def test_an_engines_image_can_be_set(own: Callable[[str], Path]) -> None:
    path = own("version: 1\nengines:\n  vllm: {extends: vllm, default_image: own/vllm}\n")
    assert load_catalogue([builtin_path(), path]).engine("vllm").default_image == "own/vllm"


def test_a_mistake_in_a_users_file_names_that_file(own: Callable[[str], Path]) -> None:
    path = own("version: 1\nmodes:\n  mine:\n    extends: vllm-nixl\n    lease: {value_s: -3}\n")
    with pytest.raises(Invalid) as caught:
        load_catalogue([builtin_path(), path])
    problem = caught.value.problem
    assert problem.message.startswith(f"{path}:5: modes.mine.lease.value_s: ")


def test_every_mistake_is_named_at_once(own: Callable[[str], Path]) -> None:
    path = own("version: 1\nmodes:\n  a: {x: 1}\n  b: {title: t, router: {program: r, y: 2}}\n")
    with pytest.raises(Invalid) as caught:
        load_catalogue([builtin_path(), path])
    lines = {p.values["line"] for p in caught.value.problems}
    assert {3, 4} <= lines


def test_what_is_generated_is_not_stale() -> None:
    assert generate.stale() == []


def test_the_schema_knows_every_section_and_mode_field() -> None:
    schema = generate.schema()
    assert set(schema["properties"]) == {
        "version", "vendors", "engines", "routers", "apis", "series", "modes", "layouts",
    }  # fmt: skip
    fields = schema["$defs"]["Mode"]["properties"]
    assert {"extends", "roles", "router", "cache"} <= set(fields)
    assert "origin" not in fields
    assert schema["$defs"]["Mode"]["additionalProperties"] is False
