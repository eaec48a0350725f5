"""Which rules hold between prefill and decode: a mode's data, asked by `backend.domain.rules`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from backend.domain.value import Value

Direction = Literal["decode>=prefill", "prefill>=decode", "any"]
Tokens = tuple[str, ...]


class PairingRecipe(Value):
    """Which rules hold between prefill and decode.

    `must_agree` are factors both sides must share; `handshake` are those the connector hashes and
    compares itself, so that a difference fails every request. `divisible`: unequal tensor parallel
    sizes must divide each other; `per_head`: they split each transfer head by head.
    `data_parallel` is for models with experts only where ranks of others would share a port.
    `prefill_draft_tokens`: what prefill speculates with where decode speculates at all.
    """

    model_config = ConfigDict(extra="forbid")

    tensor_parallel: Direction = "any"
    divisible: bool = False
    per_head: bool = False
    data_parallel: Literal["any", "experts"] = "any"
    prefill_draft_tokens: Annotated[int, Field(gt=0)] | None = None
    must_agree: Tokens = ()
    handshake: Tokens = ()
    environment: Tokens = ()
