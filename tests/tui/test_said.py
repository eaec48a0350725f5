"""Notes, differences and reasons of the backend are Chinese in the Chinese console."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from backend.adapters.recipes import builtin_path, load_catalogue
from backend.services.pictures import mode_view
from pdtui.i18n import use
from pdtui.i18n.foreign import said_as

HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    use("en")


SENTENCES = (
    "cache_aware on both sides; per-role policy flags have no effect",
    "prefill cache_aware, decode round_robin",
    "spec.env.A: added DEBUG",
    "spec.roles.decode.parameters[1]: removed --seed",
    "health path fails: connection refused",
    "ended with exit code 1: OSError: [Errno 98] Address already in use",
    "its host does not answer",
    "it needs ascend accelerators; the hosts have nvidia",
    "vllm-nixl cannot use mooncake; it takes: lmcache",
)


@pytest.mark.parametrize("text", SENTENCES)
def test_known_sentences_are_chinese(text: str) -> None:
    assert said_as(text) == text
    use("zh")
    assert HAN.search(said_as(text)), text


def test_what_the_modes_say_of_themselves_is_chinese() -> None:
    """Titles may be names alone; what is told of them, and of their router's arguments, may not."""
    modes = [mode_view(m) for m in load_catalogue([builtin_path()]).modes.values()]
    told = {m.summary for m in modes} | {note for m in modes for note in m.notes}
    told |= {row.note for m in modes for row in (*m.rows, *m.unset)}
    use("zh")
    assert [text for text in told if text and not HAN.search(said_as(text))] == []
    assert {said_as(m.title) for m in modes} >= {"vLLM + NIXL", "自定义"}


def test_what_nobody_has_put_into_words_stays_as_it_came() -> None:
    use("zh")
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    assert said_as(text) == text
