"""Running scripts over a real SSH connection."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import HostDenied, HostUnreachable, RemoteFailed, TimedOut
from backend.domain.host import Host
from tests.backend.ssh.conftest import Machine


async def test_output_exit_and_arguments(pool: SshPool, host: Host) -> None:
    out = await pool.run(
        host, 'printf "%s|" "$@"; echo bad >&2; exit 3', args=["a b", "$HOME"], check=False
    )
    assert (out.stdout, out.stderr, out.exit) == ("a b|$HOME|", "bad\n", 3)
