"""What every plain value of the domain is made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A plain value: never changed, and equal to one of the same fields.

    Its validator is built when it is first used, not when its module is imported: a command uses
    few of all values there are, and parts of a document are checked by the whole's validator.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)
