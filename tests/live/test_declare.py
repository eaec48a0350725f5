"""Documents in files, from nothing to a group and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pdtui.state.yamltext import dump
from tests.live.lab import Lab, deployment
from tests.live.test_cli import Told, pdtui

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def host_document(entry: dict[str, Any], ports: list[int]) -> dict[str, Any]:
    """An inventory entry of the laboratory as a document."""
    spec = {k: v for k, v in entry.items() if k not in ("name", "labels") and v not in (None, "")}
    return {"apiVersion": "pdtui/v1", "kind": "Host", "metadata": {"name": entry["name"]},
            "spec": {**spec, "service_port_range": ports}}  # fmt: skip


def pids(told: Told) -> dict[str, int]:
    """Process ids by instance."""
    return {m["id"]: m["pid"] for m in told.json["members"]}


def write_all(lab: Lab, folder: Path) -> Path:
    """Hosts, a cache service, a broken file and a deployment; the deployment's file."""
    folder.mkdir()
    hosts = [host_document(h, list(h["service_port_range"])) for h in lab.inventory]
    (folder / "hosts.yaml").write_text("---\n".join(dump(h) for h in hosts))
    (folder / "broken.yaml").write_text("a: [1,\n")
    (folder / "cache.yaml").write_text(
        "kind: CacheService\nmetadata: {name: shared}\n"
        "spec: {provider: lmcache, endpoint: '127.0.0.1:5'}\n"
    )
    file = folder / "chat.yaml"
    file.write_text("# our chat\n" + dump(deployment(lab.model)))
    return file


async def test_files_become_a_group_change_it_and_take_it_away(lab: Lab) -> None:
    await lab.client()
    folder = lab.root / "documents"
    file = write_all(lab, folder)

    planned = await pdtui(lab, "plan", "-f", str(folder))
    assert planned.code == 2
    assert "broken.yaml is not readable YAML" in planned.err
    assert "+ Deployment chat: create" in planned.out
    unasked = await pdtui(lab, "apply", "-f", str(folder))
    assert unasked.code == 2
    assert "[cli.no_terminal]" in unasked.err
    assert "--yes" in unasked.err

    applied = await pdtui(lab, "apply", "-f", str(folder), "--yes", "--wait", "--json")
    assert applied.code == 2, applied.err  # the broken file; the others are saved
    assert [g["status"] for g in applied.json] == ["Running"]
    assert [h["state"] for h in (await pdtui(lab, "hosts", "list", "--json")).json] == ["up"] * 3
    before = pids(await pdtui(lab, "get", "chat", "--json"))

    (folder / "broken.yaml").unlink()
    assert (await pdtui(lab, "diff", "-f", str(folder))).code == 0
    file.write_text(file.read_text().replace("'8192'", "'4096'"))
    differs = await pdtui(lab, "diff", "-f", str(folder))
    assert differs.code == 5
    assert {"-  - '8192'", "+  - '4096'"} <= {x.replace("   ", " ", 1) for x in lines_of(differs)}

    edited = await pdtui(lab, "apply", "-f", str(file), "--yes")
    assert edited.code == 0, edited.err
    assert "Config changed" in edited.out
    marked = await pdtui(lab, "get", "chat", "--json")
    assert marked.json["config_changed"]
    assert pids(marked) == before
    file.write_text(file.read_text().replace("replicas: 1", "replicas: 2", 1))
    waits = await pdtui(lab, "apply", "-f", str(file), "--yes")
    assert waits.code == 3, waits.err
    assert "[life.stale]" in waits.err

    restarted = await pdtui(lab, "apply", "-f", str(file), "--yes", "--restart", "--wait")
    assert restarted.code == 0, restarted.err
    assert "~ Deployment chat: restart" in restarted.out
    ready = await pdtui(lab, "wait", "chat", "--for", "serving", "--timeout", "120", "--json")
    assert ready.json[0]["roles"]["prefill"] == {
        **ready.json[0]["roles"]["prefill"], "wanted": 2, "ready": 2,
    }  # fmt: skip
    assert not ready.json[0]["config_changed"]
    assert not set(pids(await pdtui(lab, "get", "chat", "--json")).values()) & set(before.values())

    exported = await pdtui(lab, "export", "--all", "--into", str(folder))
    assert exported.code == 0, exported.err
    assert file.read_text().startswith("# our chat\n")
    assert (await pdtui(lab, "plan", "-f", str(folder))).out.splitlines()[-1] == "Plan: 5 unchanged"

    gone = await pdtui(lab, "delete", "-f", str(folder), "--yes", "--wait", "--json")
    assert gone.code == 0, gone.err
    assert {(d["kind"], d["deleted"]) for d in gone.json} == {
        ("Deployment", True), ("CacheService", True), ("Host", True),
    }  # fmt: skip
    assert lab.directories() == set()
    assert (await pdtui(lab, "hosts", "list", "--json")).json == []


def lines_of(told: Told) -> set[str]:
    """The printed lines with runs of leading blanks made one shape."""
    return {line[:1] + "  " + line[1:].strip() for line in told.out.splitlines() if line}


async def test_waiting_ends_by_state_time_and_name(lab: Lab) -> None:
    await lab.add_hosts()
    client = await lab.client()
    assert (await pdtui(lab, "wait", "nobody", "--for", "running")).code == 1
    await client.apply(deployment(lab.model) | {"metadata": {"name": "off"}}, etag="")
    await client.pause("off", True)
    assert (await pdtui(lab, "wait", "off", "--for", "stopped", "--timeout", "60")).code == 0
    late = await pdtui(lab, "wait", "off", "--for", "running", "--timeout", "0.5")
    assert late.code == 4
    assert "[wait.timeout]" in late.err
    await client.delete("off")
    assert (await pdtui(lab, "wait", "off", "--for", "deleted", "--timeout", "60")).code == 0
