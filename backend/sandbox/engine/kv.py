"""Tokens, the KV they leave behind, and the answer that follows from it. All deterministic.

A token is up to four bytes of the prompt. The KV of sixteen tokens (a granule) is 4 KiB made from a
digest chained over all tokens so far; the answer is drawn from the last granule alone, so whoever
decodes with another prompt's KV, or with damaged bytes, answers something else.
"""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence

GRANULE = 16
DIGEST = 32
GRANULE_BYTES = 4096
_VOCABULARY = 151_936
_SEED = b"pdtui"
_WORDS = (  # noqa: SIM905
    "the a of and in to is that it as with by on for from at which when over under between after "
    "before light water stone river house road field hand voice night morning summer winter city "
    "window paper story music garden mountain shadow letter silver golden quiet bright slow small "
    "large open warm cold deep far near old young new first last early late seems becomes remains "
    "carries follows finds keeps turns moves holds shows gives takes brings leaves"
).split()


def tokenize(text: str) -> list[int]:
    """Token ids of a text."""
    data = text.encode()
    return [zlib.crc32(data[i : i + 4]) % _VOCABULARY for i in range(0, len(data), 4)]


def chain(tokens: Sequence[int]) -> list[bytes]:
    """The digest after each granule, the last one possibly of fewer tokens."""
    out, state = [], _SEED
    for i in range(0, len(tokens), GRANULE):
        part = b"".join(t.to_bytes(4, "big") for t in tokens[i : i + GRANULE])
        state = hashlib.blake2b(state + part, digest_size=DIGEST).digest()
        out.append(state)
    return out


def to_bytes(digests: Sequence[bytes]) -> bytes:
    """The KV of some granules."""
    return b"".join(d * (GRANULE_BYTES // DIGEST) for d in digests)


def last_state(data: bytes) -> bytes:
    """The state that decoding starts from, read out of KV bytes."""
    return data[-DIGEST:]


def words(state: bytes) -> Iterator[str]:
    """The answer to a prompt with that last state, one token at a time, without an end."""
    for n in itertools.count():
        value = zlib.crc32(state + n.to_bytes(4, "big"))
        yield (" " if n else "") + _WORDS[value % len(_WORDS)]


def natural_length(state: bytes) -> int:
    """After how many tokens the answer ends by itself."""
    return 12 + zlib.crc32(state) % 37


class PrefixCache:
    """Full blocks seen before, least recently used first. `unit` is a block in tokens."""

    def __init__(self, block_size: int, capacity_tokens: int, enabled: bool) -> None:
        self.unit = max(GRANULE, -(-block_size // GRANULE) * GRANULE)
        self._most = max(1, capacity_tokens // self.unit)
        self._enabled = enabled
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def hit(self, digests: Sequence[bytes], tokens: int) -> int:
        """How many leading tokens need no computing; always less than `tokens`."""
        step = self.unit // GRANULE
        count = 0
        for index in range(step - 1, (tokens - 1) // GRANULE, step):
            if not self._enabled or digests[index] not in self._blocks:
                break
            self._blocks.move_to_end(digests[index])
            count += self.unit
        return count

    def add(self, digests: Sequence[bytes], tokens: int) -> None:
        """Remember the full blocks of a prompt."""
        step = self.unit // GRANULE
        for index in range(step - 1, tokens // GRANULE, step):
            self._blocks[digests[index]] = None
            self._blocks.move_to_end(digests[index])
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
