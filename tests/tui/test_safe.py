"""Foreign text is drawn as it is written: never parsed, never obeyed, never wider than it says."""

from __future__ import annotations

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.domain.errors import Refused
from pdtui.present import detail, events, groups, hosts, members
from pdtui.present.cells import Cell, Column, Line, Row, Span, fit, plain, width
from pdtui.present.safe import clean, lines
from pdtui.widgets.log_pane import LogPane
from tests.tui.conftest import Start
from tests.tui.factories import NOW, event, host, member, running

NASTY = [
    "[/foo]",
    "[red]x[/red]",
    "[launcher.py:70] started",
    "[@click=app.quit]press[/]",
    "\\[x]",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07after",
    "\x1b]52;c;ZWNobyBoaQ==\x07",
    "\x9b2Jcleared",
    "a\tb\nc\rd",
    "\u202egnp.exe",
    "\u2066isolated\u2069",
    "zero\u200bwidth",
    "nul\0byte",
    "机器-北京 全角ＡＢＣ",
    "e\u0301 combining",
    "\U0001f469\u200d\U0001f680 rocket",
    "lone \udcff surrogate",
    "\ue000 private",
    "${oops} {name} %s",
    "",
]


@given(st.text(alphabet=st.characters(codec=None)))  # type: ignore[arg-type]
def test_clean_leaves_one_printable_line(text: str) -> None:
    shown = clean(text)
    assert shown.isprintable()
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for c in shown)
    assert clean(shown) == shown


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_clean_keeps_ascii_as_it_is(text: str) -> None:
    assert clean(text) == text


@given(st.text(), st.integers(0, 60), st.sampled_from(["left", "right"]))
def test_fit_fills_exactly(text: str, size: int, align: str) -> None:
    assert width(fit((Span(text),), size, align)) == size  # type: ignore[arg-type]


@given(st.text())
def test_no_view_of_foreign_text_can_fail(text: str) -> None:
    view = running(
        "g",
        model=text,
        engine=text,
        changes=(text,),
        policies=text,
        members=(member("m", "prefill", text, note=text, accelerator_type=text, failures=1),),
    )
    machine = host("h", 1, note=text, address=text, user=text, labels={text: text})
    happened = event(1, "g", text, instance=text, actor=text)
    shown: list[Line] = [
        *groups.head(view, 80, 20),
        *detail.group(view, text),
        *detail.member(view.members[0], NOW),
        *detail.host(machine, NOW),
        *detail.event(happened),
        *events.recent([happened], "g", 3),
    ]
    rows = [*groups.rows([view], NOW), *members.rows(view, NOW), *hosts.rows([machine], NOW)]
    shown += [cell.spans for row in rows for cell in row.cells]
    assert all(plain(line).isprintable() for line in shown)


def test_escape_sequences_and_overwrites_are_dropped() -> None:
    assert clean("\x1b[31mred\x1b[0m") == "red"
    assert clean("\x1b]52;c;ZWNobyBoaQ==\x07x") == "x"
    assert clean("\u202eabc\u200b") == "abc"
    assert lines("10%\r50%\r100%\ndone") == ["100%", "done"]
    assert lines("a\r\nb") == ["a", "b"]


def _random_texts(count: int) -> list[str]:
    rng = random.Random(7)
    pools = ["[]/\\@=$#{}abc", "\x1b[]0;m\x07", "全角机器", "\u202e\u200d\ufe0f\u0301é", "ab \t\n"]
    return [
        "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 30)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("texts", [NASTY, _random_texts(150)], ids=["nasty", "random"])
async def test_the_table_draws_it_literally(start: Start, texts: list[str]) -> None:
    async with start() as d:
        table = d.table
        table._columns = (Column("only", "ONLY", most=60),)
        table._natural = [10]
        table.set_rows([Row(str(i), (Cell.of(t),)) for i, t in enumerate(texts)])
        await d.pilot.pause()
        for i, text in enumerate(texts):
            strip = table._row(table.rows[i], 70, current=False)
            assert strip.cell_length == 70
            assert strip.text.strip() == plain(fit((Span(text),), 60)).strip()


async def test_every_place_takes_it(start: Start) -> None:
    name = "qwen3-32b"
    async with start(size=(120, 30)) as d:
        view = d.client.group(name)
        await d.open_group(name)
        for text in NASTY[::2]:
            odd = view.members[0].model_copy(update={"note": text, "host": text})
            changed = {"model": text, "members": (odd, *view.members[1:])}
            d.client.put(view.model_copy(update=changed))
            d.client.put(event(101 + NASTY.index(text), name, text))
            d.console.say(text)
            await d.settle()
            if (shown := clean(text).strip()) and len(shown) < 20:
                assert d.text.count(shown) >= 3
            d.console.report(Refused.of("x", text, path=text, values={text: text}, remedy=text))
            await d.pilot.pause()
            assert clean(text).strip() in d.text
            await d.pilot.press("escape")


async def test_a_log_takes_it(start: Start) -> None:
    async with start(size=(120, 40)) as d:
        texts = [*NASTY, *_random_texts(100)]
        d.client.logs["qwen3-32b-p0", 1] = "\n".join([*texts, "the end", ""])
        await d.open_group("qwen3-32b", "qwen3-32b-p0")
        await d.press("l")
        await d.until(lambda: "the end" in d.text)
        pane = d.console.screen.query_one(LogPane)
        assert all(line.isprintable() for line in pane.lines_held)
        await d.press("w", "g", "slash", "[", "/", "f", "enter")
        assert "[/foo]" in d.text
