"""What can be made to go wrong on an embedded host while it runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from backend.domain.errors import Invalid

DropAt = Literal["", "start", "output", "exit"]


@dataclass
class Faults:
    """The switches of one host; all off at first. Set them at any time.

    refuse        the port is closed: connections are refused
    mute          connections are accepted and nothing is ever said on them
    deny          every login is refused
    session_cap   most sessions at once on one connection; 0 is no cap
    noise         bytes that each command prints first, as a talkative rc file does
    noise_after   bytes that each command prints last
    latency       seconds before each command starts
    forwarding    whether direct-tcpip channels may be opened
    disk_full     commands cannot write a byte to any file (they get EFBIG, for there is no other
                  way to fill a disk that all hosts share); pipes and sockets are as ever
    drop_at       where the next `drops` commands lose their connection: `start` (it runs, nothing
                  of it is seen), `output` (after `drop_after` bytes), `exit` (it ran to its end,
                  its exit status is never told)
    drops         how many commands `drop_at` still hits
    drop_after    bytes of output that get through first with `drop_at` = `output`
    """

    refuse: bool = False
    mute: bool = False
    deny: bool = False
    session_cap: int = 0
    noise: bytes = b""
    noise_after: bytes = b""
    latency: float = 0.0
    forwarding: bool = True
    disk_full: bool = False
    drop_at: DropAt = ""
    drops: int = 0
    drop_after: int = 0

    def take_drop(self) -> DropAt:
        """Where the command that starts now is to lose its connection; counts it."""
        if not self.drop_at or self.drops <= 0:
            return ""
        self.drops -= 1
        return self.drop_at

    def update(self, values: dict[str, Any]) -> None:
        """Set switches from plain data (byte strings as text, `\\xNN` for raw bytes).

        Raises Invalid for an unknown switch or a value of another type; nothing is set then.
        """
        kinds = {f.name: type(getattr(self, f.name)) for f in fields(self)}
        new: dict[str, Any] = {}
        for name, value in values.items():
            kind = kinds.get(name)
            if kind is None:
                raise Invalid.of("sandbox.fault", f"{name!r} is no fault of a host.", path=name)
            if kind is bytes and isinstance(value, str):
                value = value.encode("latin-1", "replace")
            elif kind is float and isinstance(value, int):
                value = float(value)
            if type(value) is not kind:
                raise Invalid.of("sandbox.fault", f"must be a {kind.__name__}.", path=name)
            if name == "drop_at" and value not in ("", "start", "output", "exit"):
                raise Invalid.of("sandbox.fault", "must be start, output or exit.", path=name)
            new[name] = value
        for name, value in new.items():
            setattr(self, name, value)
