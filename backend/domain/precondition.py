"""What a write is based on: entity tags, and their comparison as HTTP has it (RFC 9110, 13.1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import BaseModel

from backend.domain.errors import Changed, Invalid, NotFound


def etag(saved: BaseModel, version: int = 0) -> str:
    """The strong entity tag of something saved, quotes included.

    It tells apart every content, and with `version` also saves that came back to one.
    """
    digest = hashlib.sha256(saved.model_dump_json(by_alias=True).encode()).hexdigest()[:16]
    return f'"{version}-{digest}"' if version else f'"{digest}"'


@dataclass(frozen=True)
class Expect:
    """The state a write is meant for: one of `tags`, `any` that is there, or `absent`.

    With none of the three whatever is there will do, also nothing.
    """

    tags: frozenset[str] = frozenset()
    any: bool = False
    absent: bool = False

    @property
    def stated(self) -> bool:
        """Whether anything is expected."""
        return bool(self.tags) or self.any or self.absent

    def meets(self, what: str, now: str | None) -> None:
        """Compare with the tag there is `now`, None for nothing. `what` names the thing.

        Raises Changed (`write.changed`, `write.exists`), NotFound (`write.gone`) when a write is
        meant for something that was deleted meanwhile.
        """
        if self.absent and now is not None:
            raise Changed.of(
                "write.exists",
                f"{what} is there already; this write is meant to create it.",
                values={"expected": "nothing", "found": now},
                remedy="Read it first, and send its ETag in If-Match to change it.",
            )
        if now is None and self.tags:
            raise NotFound.of(
                "write.gone",
                f"{what} is not there any more; this write is meant for an earlier state of it.",
                values={"expected": sorted(self.tags), "found": None},
                remedy="Send If-None-Match: * to create it anew.",
            )
        if self.tags and now not in self.tags:
            raise Changed.of(
                "write.changed",
                f"{what} was changed by someone else meanwhile; nothing was overwritten.",
                values={"expected": sorted(self.tags), "found": now},
                remedy="Read it again, and decide on what it is now.",
            )


WHATEVER = Expect()


def parse_expect(if_match: str | None, if_none_match: str | None) -> Expect:
    """The headers of a write. Raises Invalid (`request.precondition`) for what is no tag, and for
    an `If-None-Match` other than `*`."""
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise _unread("If-None-Match", if_none_match, "a write takes `*` there, and alone")
        return Expect(absent=True)
    if if_match is None:
        return WHATEVER
    if if_match.strip() == "*":
        return Expect(any=True)
    return Expect(tags=frozenset(_tags(if_match)))


def _tags(text: str) -> list[str]:
    found = [t.strip() for t in text.split(",")]
    for tag in found:
        if len(tag) < 3 or tag[0] != '"' or tag[-1] != '"' or '"' in tag[1:-1]:
            raise _unread("If-Match", text, "a strong entity tag stands in double quotes")
    return found


def _unread(header: str, found: str, why: str) -> Invalid:
    return Invalid.of(
        "request.precondition",
        f"{header}: {found[:80]!r} is not read here: {why}.",
        values={"header": header, "found": found[:80]},
        remedy='Send the ETag of the last read, for example If-Match: "3-0f9a…"; or *.',
    )
