"""Where everything of ours lies on this machine, from one object."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import platformdirs

SOCKET_LIMIT = 100
"""AF_UNIX paths end near 107 bytes."""


@dataclass(frozen=True)
class Paths:
    """`state` holds the store and logs, `config` the user's own catalogue, `run` the socket."""

    state: Path
    config: Path
    run: Path

    @classmethod
    def default(cls, state_dir: Path | None = None) -> Paths:
        """XDG folders; `state_dir` (or PDTUI_STATE_DIR) moves state and socket together."""
        chosen = state_dir or _env_path("PDTUI_STATE_DIR")
        config = _env_path("PDTUI_CONFIG_DIR") or Path(platformdirs.user_config_dir("pdtui"))
        if chosen is not None:
            return cls(chosen, config, _socket_home(chosen / "run", chosen))
        state = Path(platformdirs.user_state_dir("pdtui"))
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        return cls(state, config, _socket_home(Path(runtime or state) / "pdtui", state))

    @property
    def store(self) -> Path:
        """The SQLite file."""
        return self.state / "store.sqlite3"

    @property
    def known_hosts(self) -> Path:
        """Host keys that a person accepted."""
        return self.state / "known_hosts"

    @property
    def lock(self) -> Path:
        """Held by the one backend that owns the state."""
        return self.state / "lock"

    @property
    def log(self) -> Path:
        """The backend's own log."""
        return self.state / "backend.log"

    @property
    def socket(self) -> Path:
        """Where the backend listens."""
        return self.run / "api.sock"

    @property
    def catalogue(self) -> Path:
        """The user's own modes."""
        return self.config / "pd-modes.yaml"

    def make(self) -> None:
        """Create the private folders. Raises Refused for one that others may enter or own."""
        for folder in (self.state, self.run):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            seen = folder.stat()
            if seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
                from backend.domain.errors import Refused  # slow to load, and seldom needed

                raise Refused.of(
                    "paths.not_private",
                    f"{folder} is open to others (mode {stat.S_IMODE(seen.st_mode):o}, owner "
                    f"{seen.st_uid}); the socket and the store lie in it.",
                    values={"path": str(folder), "mode": f"{stat.S_IMODE(seen.st_mode):o}"},
                    remedy=f"chmod 700 {folder}, or choose another with --state-dir.",
                )


def _env_path(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value) if value else None


def _socket_home(wanted: Path, state: Path) -> Path:
    """`wanted`, or a short folder of ours in /tmp when its path is too long for a socket."""
    if len(str(wanted / "api.sock").encode()) <= SOCKET_LIMIT:
        return wanted
    import hashlib

    mark = hashlib.sha256(str(state).encode()).hexdigest()[:12]
    return Path(f"/tmp/pdtui-{os.getuid()}-{mark}")  # noqa: S108 created 0700, owner checked
