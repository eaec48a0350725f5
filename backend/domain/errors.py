"""What can go wrong, as one tree; every leaf names the field or host, the values and the remedy.

PdError
├── Invalid       400  the document cannot be read as one
├── Unknown       401  the caller did not say who it is, or not rightly
├── Denied        403  the caller may not
├── NotFound      404
├── WrongMethod   405  there is something at this address, but not for this method
├── Conflict      409  true now, may pass: stale configuration, a restart in flight, a second owner
├── Changed       412  what the caller saw is not what is there now: nothing was overwritten
├── TooLarge      413
├── WrongType     415  the body is not of a type that is read here
├── Unconditional 428  a write that does not say what it is based on
├── Refused       422  a save or an action that would be wrong
├── HostError     502  a host did not do what it was asked
│   ├── HostUnreachable   no connection, or it broke
│   ├── HostKeyUnknown    never seen: shown with its fingerprint, accepted by a person
│   ├── HostKeyChanged    differs from the known one
│   ├── HostDenied        the login was refused
│   └── RemoteFailed      the command ran and failed
├── TimedOut      504
└── StoreFull     507  the disk has no room: reading goes on, nothing is stored until there is room
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from backend.domain.value import Value

Severity = Literal["refused", "warning", "unverified", "fine"]


class Problem(Value):
    """One finding: a rule's id, where it bites, what was seen, and what to do about it.

    `path` is written from the document's root (`spec.roles.decode.parameters[3]`) or is empty.
    `case` is which of the rule's sentences this is: with it and `values` the sentence is found in
    any language (`backend.domain.rules.words`); empty where there is only this one.
    """

    rule: str
    message: str
    case: str = ""
    path: str = ""
    values: dict[str, Any] = Field(default_factory=dict)
    remedy: str = ""
    verdict: Severity = "refused"

    def sentence(self) -> str:
        """The finding as a person reads it: where, what, and what to do."""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}" + (f" {self.remedy}" if self.remedy else "")


class PdError(Exception):
    """Any failure this program explains: one or more `Problem`s, the chief one first."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "internal"

    def __init__(self, *problems: Problem) -> None:
        self.problems: tuple[Problem, ...] = problems
        super().__init__("\n".join(p.sentence() for p in problems))

    @classmethod
    def of(
        cls,
        rule: str,
        message: str,
        *,
        path: str = "",
        remedy: str = "",
        values: dict[str, Any] | None = None,
    ) -> Self:
        """Build the error from the parts of its only problem."""
        return cls(
            Problem(rule=rule, message=message, path=path, remedy=remedy, values=values or {})
        )

    @property
    def problem(self) -> Problem:
        """The chief problem."""
        return self.problems[0]


class Invalid(PdError):
    """The input is no document of ours: unknown field, wrong type, unreadable YAML."""

    status, exit_code, kind = 400, 2, "invalid"


class Unknown(PdError):
    """The caller did not say who it is, or not rightly."""

    status, kind = 401, "unknown"


class Denied(PdError):
    """The caller may not do this."""

    status, kind = 403, "denied"


class NotFound(PdError):
    """Nothing of that name."""

    status, kind = 404, "not_found"

    @classmethod
    def among(
        cls,
        rule: str,
        what: str,
        name: str,
        known: Iterable[str],
        command: str,
        field: str = "name",
    ) -> Self:
        """No `what` is called `name`; `known` are, and `command` lists them. `field` is the key of
        the name among the values."""
        names = sorted(known)
        return cls.of(
            rule,
            f"there is no {what} {name!r}; there are: {', '.join(names) or 'none'}.",
            values={field: name, "known": names},
            remedy=f"List them with `{command}`.",
        )


class WrongMethod(PdError):
    """Something is at this address, but it does not take this method."""

    status, kind = 405, "wrong_method"


class Conflict(PdError):
    """Refused by the present state; `life.stale` is the usual one."""

    status, exit_code, kind = 409, 3, "conflict"


class Changed(PdError):
    """What the caller based its write on is not what is there now; nothing was overwritten."""

    status, exit_code, kind = 412, 3, "changed"


class TooLarge(PdError):
    """More than is read."""

    status, exit_code, kind = 413, 2, "too_large"


class WrongType(PdError):
    """The body is not of a type that is read here."""

    status, exit_code, kind = 415, 2, "wrong_type"


class Unconditional(PdError):
    """A write that does not say which state it is based on."""

    status, kind = 428, "unconditional"


class Refused(PdError):
    """Provably wrong; nothing was stored or moved."""

    status, kind = 422, "refused"


class HostError(PdError):
    """A host did not do what it was asked. `values["host"]` names it."""

    status, exit_code, kind = 502, 4, "host"


class HostUnreachable(HostError):
    """No connection to the host, or it broke while in use."""

    kind = "host_unreachable"


class HostKeyUnknown(HostError):
    """The host's key has never been accepted; `values` has its type and fingerprint."""

    kind = "host_key_unknown"


class HostKeyChanged(HostError):
    """The host shows another key than the accepted one; `values` has both fingerprints."""

    kind = "host_key_changed"


class HostDenied(HostError):
    """The host refused the login."""

    kind = "host_denied"


class RemoteFailed(HostError):
    """A remote command ran and failed; `values` has its exit status and the end of its stderr."""

    kind = "remote_failed"


class TimedOut(PdError):
    """An external wait ran out."""

    status, exit_code, kind = 504, 4, "timeout"


class StoreFull(PdError):
    """The disk has no room for the store: nothing was stored, reading goes on."""

    status, exit_code, kind = 507, 4, "store_full"


KINDS: dict[str, type[PdError]] = {
    c.kind: c
    for c in (
        PdError, Invalid, Denied, NotFound, Conflict, Refused, HostError, HostUnreachable,
        HostKeyUnknown, HostKeyChanged, HostDenied, RemoteFailed, TimedOut, Unknown, WrongMethod,
        Changed, TooLarge, WrongType, Unconditional, StoreFull,
    )
}  # fmt: skip
"""Error class by the `kind` that travels in an API error body."""
