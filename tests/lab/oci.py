"""The OCI runtime of laboratory hosts: runc, with what their machine does not have or allow.

It takes out limits that the machine may have no right to raise, lets the tiny image see the host's
own /usr, and does what NVIDIA's hook would do for docker: device files of the cards that
NVIDIA_VISIBLE_DEVICES names. Called by podman and dockerd as `runc` is; `/etc/lab/oci.json` says
what there is: `mounts` [[source, target]], `cards` {uuid: device file}.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

HOST = Path("/etc/lab/oci.json")


def relieved(process: dict[str, Any]) -> None:
    """The process without limits of its own."""
    process.pop("rlimits", None)
    process.pop("oomScoreAdj", None)


def fitted(config: dict[str, Any], host: dict[str, Any]) -> None:
    """The container with the host's mounts, before its own, and its cards."""
    bind = {"type": "bind", "options": ["rbind", "ro", "rprivate"]}
    config["mounts"][:0] = [
        {"source": "tmpfs", "destination": target, "type": "tmpfs"} if source == "tmpfs" else
        {"source": source, "destination": target, **bind}
        for source, target in host["mounts"]
    ]  # fmt: skip
    seen = dict(e.split("=", 1) for e in config["process"]["env"] if "=" in e)
    visible = set(seen.get("NVIDIA_VISIBLE_DEVICES", "").split(","))
    for number, (uuid, file) in enumerate(host["cards"].items()):
        if not visible & {uuid, str(number)}:
            continue
        config["process"]["env"].append(f"CARD_{number}={uuid}")
        config["linux"].setdefault("devices", []).append(
            {"path": file, "type": "c", "major": 1, "minor": 3, "fileMode": 0o666}
        )


def main(argv: list[str]) -> None:
    """Change the bundle or process that the arguments name, then become runc."""
    for flag, value in pairwise(argv):
        file = Path(value, "config.json") if flag in ("--bundle", "-b") else Path(value)
        if flag not in ("--bundle", "-b", "--process", "-p") or not file.is_file():
            continue
        data = json.loads(file.read_text())
        if "process" in data and "create" in argv:
            fitted(data, json.loads(HOST.read_text()))
        relieved(data.get("process", data))
        file.write_text(json.dumps(data))
    os.execvp("runc", ["runc", *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
