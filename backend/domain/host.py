"""A host reached over SSH, its accelerators, and what one look at it showed."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from backend.domain.value import Value

Vendor = Literal["nvidia", "ascend"]
Runtime = Literal["process", "docker", "podman"]

NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")
UNSAFE = re.compile(r"^-|[\s\x00-\x1f\x7f'`\"$;&<>|(){}]")
"""What OpenSSH takes in no host or user: `Match exec` and `ProxyCommand` hand it to a shell."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_IFNAME = re.compile(r"^[^\s/\x00-\x1f]{1,15}$")
STORED = {"stored": True}
"""Validation context of an entry that was taken before: a rule that came later must not shut its
owner out of the whole store."""
DEFAULT_PORTS = (40000, 40063)
"""Default service port range, inclusive: 64 ports, clear of the engines' own random windows."""


class Host(Value):
    """An inventory entry: how to reach a host and what it may be used for.

    `address` may be a name, an IP or an alias of `~/.ssh/config`. `service_address` is what the
    group's other members reach it by; null means the address our SSH connection arrived at.
    `executables` maps an engine or router program (`vllm`, `sglang`, `vllm-router`) to its path or
    to a venv prefix, for `process` hosts: a non-login shell has no PATH of the user's.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    address: str
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    user: str | None = None
    jump: str | None = None
    identity_files: tuple[str, ...] = ()
    service_address: str | None = None
    runtime: Runtime = "process"
    work_dir: str = ".pdtui"
    service_port_range: tuple[int, int] | None = None
    kv_transfer_ifname: str | None = None
    executables: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, value: str) -> str:
        if not NAME.match(value):
            raise ValueError("must be lower-case letters, digits, dots and dashes")
        return value

    @field_validator("address", "user", "jump")
    @classmethod
    def _shell_leaves_it_alone(cls, value: str | None) -> str | None:
        if value and UNSAFE.search(value):
            raise ValueError("must not begin with a dash, nor hold spaces or shell characters")
        return value

    @field_validator("service_address")
    @classmethod
    def _address_is_one(cls, value: str | None, info: ValidationInfo) -> str | None:
        return value if info.context is STORED else cls._shell_leaves_it_alone(value)

    @field_validator("work_dir")
    @classmethod
    def _folder_is_one(cls, value: str, info: ValidationInfo) -> str:
        if info.context is STORED:
            return value
        if not value.strip("/ ") or _CONTROL.search(value) or ":" in value:
            raise ValueError(
                "must name a folder, without colons and control characters: runtimes of containers "
                "read a colon as the end of a path"
            )
        if value.startswith("~") and not value.startswith("~/"):
            raise ValueError("must be in the login's own home (~/NAME, or just NAME), or absolute")
        return value

    @field_validator("kv_transfer_ifname")
    @classmethod
    def _interface_is_a_name(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.context is not STORED and value and not _IFNAME.match(value):
            raise ValueError("must be an interface's name: up to 15 characters, no spaces, no '/'")
        return value

    @field_validator("identity_files", "executables", "labels")
    @classmethod
    def _one_line_each(cls, value: Any, info: ValidationInfo) -> Any:
        if info.context is STORED:
            return value
        words = [*value, *value.values()] if isinstance(value, dict) else value
        for word in words:
            if _CONTROL.search(word) or (info.field_name != "labels" and not word.strip()):
                raise ValueError(f"{word!r} is empty, or holds control characters")
        return value

    @field_validator("service_port_range")
    @classmethod
    def _range_is_ordered(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value and not 1024 <= value[0] <= value[1] <= 65535:
            raise ValueError("must be FIRST-LAST with 1024 <= FIRST <= LAST <= 65535")
        return value


class Accelerator(Value):
    """One GPU or NPU chip. `memory_mib` is 0 where the tool does not say; `mig` is set while the
    card is cut into slices, which cannot carry a member of ours."""

    index: int
    uuid: str
    vendor: Vendor
    type: str
    memory_mib: int = 0
    used_mib: int = 0
    driver: str = ""
    mig: bool = False


class Use(Value):
    """A process that computes on an accelerator. `instance` is the one it runs for, as its own
    environment says; empty where that is not ours or not readable."""

    index: int
    pid: int
    name: str = ""
    memory_mib: int = 0
    user: str = ""
    instance: str = ""

    def text(self) -> str:
        """The process as a person reads it."""
        parts = [f"pid {self.pid}"]
        if self.memory_mib:
            parts.append(f"{self.memory_mib} MiB")
        if self.user:
            parts.append(self.user)
        left = f", left over from {self.instance}" if self.instance else ""
        return f"{self.name or 'a process'} ({', '.join(parts)}{left})"


class Interface(Value):
    """One network interface: `kind` is the kernel's link kind, empty for a physical one."""

    name: str
    addresses: tuple[str, ...] = ()
    up: bool = True
    loopback: bool = False
    kind: str = ""


class Route(Value):
    """One route of the host's table; `to` is `default` or a network."""

    to: str
    interface: str
    gateway: str = ""


class Claim(Value):
    """What one instance holds on a host, read from the host's own claim files."""

    owner: str
    instance: str
    accelerators: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()


class HostFacts(Value):
    """One look at a host. `address` is where the others reach it; `listening` are TCP ports;
    `ephemeral` are those that the kernel gives to outgoing connections, but for the `reserved`;
    `files` those of the files that engines read there (`Catalogue.host_files`) that exist."""

    boot_id: str
    hostname: str = ""
    address: str
    home: str = ""
    accelerators: tuple[Accelerator, ...] = ()
    accelerator_note: str = ""
    uses: tuple[Use, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    routes: tuple[Route, ...] = ()
    listening: frozenset[int] = frozenset()
    ephemeral: tuple[int, int] = (32768, 60999)
    reserved: tuple[tuple[int, int], ...] = ()
    claims: tuple[Claim, ...] = ()
    missing_tools: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    speeds: dict[str, int] = Field(default_factory=dict)

    def outgoing(self, ports: tuple[int, int]) -> bool:
        """Whether the kernel may give one of `ports` (inclusive) to an outgoing connection."""
        first, last = max(ports[0], self.ephemeral[0]), min(ports[1], self.ephemeral[1])
        for start, end in sorted(self.reserved):
            if start > first:
                break
            first = max(first, end + 1)
        return first <= last
