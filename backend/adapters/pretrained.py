"""A model's own `config.json`, read from the host that has it."""

from __future__ import annotations

import json
import posixpath
from typing import Any

from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import NotFound, RemoteFailed
from backend.domain.host import Host

READ_S = 10.0
LIMIT = 4 << 20
"""Bytes of a config that are read; real ones have some kilobytes."""


async def read_config(pool: SshPool, host: Host, model: str) -> dict[str, Any] | None:
    """The pretrained config of the model at a path of `host`; None where nothing is known.

    A hub id has no path, a folder may lack the file, and a file may hold no object: each is
    unknown, never guessed. Raises HostError and TimedOut when the host cannot be asked.
    """
    path = folder_of(model)
    if path is None:
        return None
    try:
        data = await pool.read_file(
            host, posixpath.join(path, "config.json"), limit=LIMIT, timeout=READ_S
        )
        config = json.loads(data)
    except (NotFound, RemoteFailed, ValueError):
        return None
    return config if isinstance(config, dict) else None


def folder_of(model: str) -> str | None:
    """The model's folder as SFTP takes it (relative to the login's home), None for a hub id."""
    if model.startswith("~/"):
        return model[2:]
    return model if model.startswith(("/", "./", "../")) else None
