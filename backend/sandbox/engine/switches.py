"""Failures that can be switched on, for tests and the demo.

At start they are read from `$PDTUI_SIM_CONTROL` (a JSON file, by default `~/.pdtui-sim.json`) and
then from environment variables `PDTUI_SIM_<NAME>`. While the engine serves, `POST /sim` with a JSON
object changes them and `GET /sim` shows them. In the file, a key that is a port number holds
switches for the engine of that port only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

PREFIX = "PDTUI_SIM_"
FAILURES = ("", "500", "hang")


class SwitchError(ValueError):
    """An unknown switch, or a value of the wrong type."""


@dataclass
class Switches:
    """All switches, off by default; times in seconds.

    start_delay        waited before the engine serves
    token_delay        waited before each generated token
    prefill_delay      waited for the prompt
    fail               `500`: inference answers 500; `hang`: it never answers
    unhealthy          /health answers 503
    die                exit code to die with at start; -1 is off
    die_message        what it says on stderr then
    die_after          dies (with `die`, or 1) this long after it began to serve; 0 is off
    orphan             the engine core survives a normal stop
    slow_stop          how long SIGTERM is ignored
    stale_metrics      /metrics shows what it showed when this was switched on
    corrupt_kv         hand out wrong KV bytes
    drop_kv            forget the KV of a prompt at once, as if its lease had run out
    stale_engine       prefill hands out the engine id of an earlier life of its own
    cut_off            decode's calls to prefill's side channel go nowhere
    handshake_timeout  how long decode waits for prefill's side channel
    without            name of a connector whose library is not installed; read at the start
    """

    start_delay: float = 0.0
    token_delay: float = 0.0
    prefill_delay: float = 0.0
    fail: str = ""
    unhealthy: bool = False
    die: int = -1
    die_message: str = ""
    die_after: float = 0.0
    orphan: bool = False
    slow_stop: float = 0.0
    stale_metrics: bool = False
    corrupt_kv: bool = False
    drop_kv: bool = False
    stale_engine: bool = False
    cut_off: bool = False
    handshake_timeout: float = 5.0
    without: str = ""

    def update(self, values: Mapping[str, Any]) -> None:
        """Set some. Raises SwitchError and sets nothing when one is wrong."""
        known = {f.name for f in fields(self)}
        new = {}
        for name, value in values.items():
            if name not in known:
                raise SwitchError(f"{name!r} is no switch; there are {', '.join(sorted(known))}")
            new[name] = _as(type(getattr(self, name)), name, value)
        if new.get("fail", "") not in FAILURES:
            raise SwitchError("fail must be '', '500' or 'hang'")
        for name, value in new.items():
            setattr(self, name, value)

    def shown(self) -> dict[str, Any]:
        """All switches as plain data."""
        return asdict(self)


def _as(kind: type, name: str, value: Any) -> Any:
    try:
        if kind is bool and isinstance(value, str):
            return {"1": True, "true": True, "0": False, "false": False, "": False}[value.lower()]
        if kind is bool and not isinstance(value, bool):
            raise ValueError
        return kind(value)
    except (KeyError, ValueError, TypeError):
        raise SwitchError(f"{name} must be a {kind.__name__}, not {value!r}") from None


def read(env: Mapping[str, str], port: int) -> Switches:
    """The switches of an engine that starts now. Raises SwitchError."""
    switches = Switches()
    path = Path(env.get(f"{PREFIX}CONTROL") or Path(env.get("HOME", "/")) / ".pdtui-sim.json")
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        data = {}
    except (OSError, ValueError) as e:
        raise SwitchError(f"{path}: {e}") from e
    if not isinstance(data, dict):
        raise SwitchError(f"{path}: must hold an object")
    switches.update({k: v for k, v in data.items() if not k.isdecimal()})
    switches.update(data.get(str(port), {}))
    switches.update(
        {
            key.removeprefix(PREFIX).lower(): value
            for key, value in env.items()
            if key.startswith(PREFIX) and key != f"{PREFIX}CONTROL"
        }
    )
    return switches
