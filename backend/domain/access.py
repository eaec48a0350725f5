"""Who may ask for what: roles, tokens as they are kept, and their spelling."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, field_validator

from backend.domain.errors import Denied
from backend.domain.value import Value

Role = Literal["read", "operate", "admin"]
"""`read` sees, `operate` also changes deployments, hosts and caches, `admin` also hands out tokens
and names secrets of the backend's own machine. Each may do what those before it may."""

ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "pdtui_"
NAME = re.compile(r"^[a-z0-9]([a-z0-9._-]{0,38}[a-z0-9])?$")


class Token(Value):
    """A token as it is kept: never itself, only the SHA-256 of it.

    That is enough, since a token is 256 random bits and no word that could be guessed. Times are
    epoch seconds; `expires` is None for a token that stays.
    """

    name: str
    role: Role
    digest: str
    created: float
    created_by: str = ""
    expires: float | None = None


class NewToken(Value):
    """A token that is asked for. `days` is how long it holds; null is for ever."""

    # FastAPI warns of a body whose validator is not there yet
    model_config = ConfigDict(extra="forbid", defer_build=False)

    name: Annotated[str, Field(examples=["ci"])]
    role: Role = "read"
    days: Annotated[float, Field(gt=0, le=36_500)] | None = None

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, value: str) -> str:
        if not NAME.match(value):
            raise ValueError("must be 1 to 40 lower-case letters, digits, dots and dashes")
        return value


class TokenView(Value):
    """A token as listed; `token` is the secret itself, shown once, when it is made."""

    name: str
    role: Role
    created: float
    created_by: str = ""
    expires: float | None = None
    token: str | None = None


@dataclass(frozen=True)
class Caller:
    """Who asks: a name as the history tells it, and the role. `remote`: not over our socket."""

    name: str
    role: Role
    remote: bool = False

    def needs(self, role: Role, what: str) -> None:
        """Raises Denied (`access.role`) for a caller whose role is less."""
        if ROLES.index(self.role) < ROLES.index(role):
            raise Denied.of(
                "access.role",
                f"{what} needs the role {role}; {self.name} has {self.role}.",
                values={"needs": role, "has": self.role},
                remedy=f"Ask with a token of the role {role} "
                f"(`pdtui tokens add NAME --role {role}`).",
            )


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
