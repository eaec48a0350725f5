"""Models and engine versions read over real SFTP; the server shows the machine's home as `/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backend.adapters.models import ModelReader
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import NotFound
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine

CONFIG = {"model_type": "qwen3", "num_attention_heads": 64}


@pytest.fixture
def reader(pool: SshPool) -> ModelReader:
    return ModelReader(pool, timeout_s=10)


def model_at(folder: Path, config: Any = CONFIG, **weights: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    for name, size in weights.items():
        (folder / f"{name}.safetensors").write_bytes(b"x" * size)
    return folder


def put(machine: Machine, name: str, config: Any = CONFIG, **weights: int) -> str:
    """A model in the machine's root, and its path there."""
    model_at(machine.home / name, config, **weights)
    return f"/{name}"


async def test_a_model_at_a_path(reader: ModelReader, host: Host, machine: Machine) -> None:
    seen = await reader.read(host, put(machine, "m", a=3))
    assert (seen.state, seen.config) == ("found", CONFIG)
    assert len(seen.config_digest) == len(seen.weights_digest) == 64


async def test_digests_are_of_what_counts(
    reader: ModelReader, host: Host, machine: Machine
) -> None:
    one = await reader.read(host, put(machine, "1", a=3))
    spaced = await reader.read(host, put(machine, "2", json.dumps(CONFIG, indent=9), a=3))
    assert (one.config_digest, one.weights_digest) == (spaced.config_digest, spaced.weights_digest)
    other = await reader.read(host, put(machine, "3", {**CONFIG, "x": 1}, a=3))
    assert other.config_digest != one.config_digest
    longer = await reader.read(host, put(machine, "4", a=4))
    assert longer.weights_digest != one.weights_digest
    indexed = model_at(machine.home / "5", a=3)
    (indexed / "model.safetensors.index.json").write_text("{}")
    with_index = await reader.read(host, "/5")
    assert with_index.weights_digest != one.weights_digest


async def test_it_is_read_again_only_when_it_changed(
    reader: ModelReader, host: Host, machine: Machine
) -> None:
    folder = model_at(machine.home / "m", a=1)
    first = await reader.read(host, "/m")
    assert await reader.read(host, "/m") is first
    model_at(folder, {**CONFIG, "more": True}, a=1)
    changed = await reader.read(host, "/m")
    assert changed.config == {**CONFIG, "more": True}


@pytest.mark.parametrize(
    ("text", "note"), [("[1]", "no JSON object"), ("{", "no JSON object"), ("[" * 9999, "no JSON")]
)
async def test_a_configuration_that_is_none(
    reader: ModelReader, host: Host, machine: Machine, text: str, note: str
) -> None:
    seen = await reader.read(host, put(machine, "m", text))
    assert (seen.state, seen.config) == ("found", None)
    assert note in seen.note
    assert seen.config_digest


async def test_a_folder_without_one(reader: ModelReader, host: Host, machine: Machine) -> None:
    (machine.home / "bare").mkdir()
    (machine.home / "bare" / "m.gguf").write_bytes(b"x")
    seen = await reader.read(host, "/bare")
    assert (seen.state, seen.config, seen.config_digest) == ("found", None, "")
    assert seen.weights_digest
    gone = await reader.read(host, "/gone")
    assert gone.state == "missing"
    assert "gone" in gone.note


async def test_a_hub_id_in_the_logins_cache(
    reader: ModelReader, host: Host, machine: Machine
) -> None:
    base = machine.home / ".cache/huggingface/hub/models--Qwen--Qwen3-32B"
    blob = base / "blobs" / "abc"
    model_at(base / "snapshots" / "c0ffee")
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"x" * 5)
    (base / "snapshots" / "c0ffee" / "m.safetensors").symlink_to("../../blobs/abc")
    (base / "snapshots" / "c0ffee" / "lost.safetensors").symlink_to("../../blobs/nowhere")
    (base / "refs").mkdir()
    (base / "refs" / "main").write_text("c0ffee\n")
    seen = await reader.read(host, "Qwen/Qwen3-32B")
    assert (seen.state, seen.config) == ("found", CONFIG)
    plain = put(machine, "plain", m=5)
    assert seen.weights_digest == (await reader.read(host, plain)).weights_digest
    assert (await reader.read(host, "Qwen/Qwen3-32B", revision="c0ffee")).config == CONFIG
    for revision in ("other", "../../x", "-x y"):
        unknown = await reader.read(host, "Qwen/Qwen3-32B", revision=revision)
        assert (unknown.state, unknown.config) == ("unknown", None)


async def test_a_hub_id_in_a_cache_of_its_own_or_nowhere(
    reader: ModelReader, host: Host, machine: Machine
) -> None:
    base = machine.home / "hub" / "models--a--b"
    model_at(base / "snapshots" / "1")
    (base / "refs").mkdir()
    (base / "refs" / "main").write_text("1")
    assert (await reader.read(host, "a/b", hub_cache="/hub")).config == CONFIG
    nowhere = await reader.read(host, "a/b")
    assert (nowhere.state, nowhere.note) == ("unknown", "node1 has no local copy of a/b")
    odd = await reader.read(host, "just-a-name")
    assert odd.state == "unknown"
    assert "neither" in odd.note


async def test_a_host_that_does_not_answer_is_unknown(
    reader: ModelReader, host: Host, machine: Machine
) -> None:
    folder = put(machine, "m")
    await machine.stop()
    seen = await reader.read(host, folder)
    assert seen.state == "unknown"
    assert seen.note


async def test_the_installed_engine(reader: ModelReader, host: Host, machine: Machine) -> None:
    site = machine.home / "venv/lib/python3.11/site-packages"
    for name in ("vllm-0.29.0+cu129.dist-info", "vllm_router-0.1.15.dist-info", "vllm"):
        (site / name).mkdir(parents=True)
    for path in ("/venv", "/venv/bin/vllm"):
        entry = host.model_copy(update={"executables": {"vllm": path}})
        assert await reader.version(entry, "vllm") == "0.29.0+cu129"
    elsewhere = host.model_copy(update={"executables": {"vllm": "/none"}})
    assert await reader.version(elsewhere, "vllm") == ""
    assert await reader.version(host, "vllm") == ""
    assert await reader.version(entry, "custom") == ""


async def test_a_listing_says_sizes_and_where_there_is_none(
    pool: SshPool, host: Host, machine: Machine
) -> None:
    model_at(machine.home / "m", a=7)
    found = await pool.listing(host, "/m")
    assert {n: size for n, (size, _) in found.items()} == {
        "a.safetensors": 7, "config.json": len(json.dumps(CONFIG)),
    }  # fmt: skip
    with pytest.raises(NotFound):
        await pool.listing(host, "/nothing")
