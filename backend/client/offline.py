"""Judging documents where no backend runs: by the recipes alone, nothing of hosts."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from backend.adapters.recipes import builtin_path, load_catalogue
from backend.domain.documents import parse_deployment
from backend.domain.rules.known import Known
from backend.domain.rules.routing import settled
from backend.domain.rules.table import NO_HOSTS, judge
from backend.paths import Paths

CONNECT_S = 1.0


def listening(state_dir: Path | None) -> bool:
    """Whether anything accepts connections on the backend's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(Paths.default(state_dir).socket))
        except OSError:
            return False
    return True


class OfflineJudge:
    """The same rules as a backend asks, with its catalogue, and without an inventory."""

    def __init__(self, state_dir: Path | None) -> None:
        catalogue = load_catalogue([builtin_path(), Paths.default(state_dir).catalogue])
        self._known = Known(catalogue, inventory=False)

    def check(self, document: object, *, every: bool = False) -> dict[str, Any]:
        """What `BackendClient.check` answers. Raises Invalid for what is no document."""
        parsed = settled(parse_deployment(document), self._known.catalogue)
        found = judge(parsed, self._known, every=every)
        return {"verdicts": [p.model_dump(mode="json") for p in found], "skipped": [NO_HOSTS]}
