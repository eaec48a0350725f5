"""The benches time what they say they time."""

from __future__ import annotations

import os
import sys

import pytest

from tests.bench.console import CURSOR, p95
from tests.bench.discovery import Fleet, alone, ours, spent
from tests.bench.runner import Bench, BenchError, run, table
from tests.bench.start import BARE_APP, run_time
from tests.bench.terminal import Screen, first_paint


def test_the_screen_is_full_when_its_first_and_last_row_hold_text() -> None:
    screen = Screen(20, 3)
    screen.feed("\x1b[?1049h\x1b[2J\x1b]0;title\x07\x1b[1;1H\x1b[1;32m群组 groups\x1b[0m")
    assert screen.line(0).split() == ["群", "组", "groups"]
    assert not screen.full()
    screen.feed("\x1b[3;")
    assert not screen.full()
    screen.feed("2Hq quit")
    assert screen.line(2) == " q quit"
    assert screen.full()
    screen.feed("\x1b[2J")
    assert not screen.full()


def test_the_first_frame_of_a_real_application_is_seen_and_the_application_ended() -> None:
    assert first_paint(BARE_APP, os.environ, timeout_s=60) > 0


def test_a_program_that_paints_nothing_is_an_error_that_shows_what_it_said() -> None:
    with pytest.raises(BenchError, match=r"ended before (.|\n)*no terminal for you"):
        first_paint([sys.executable, "-c", "print('no terminal for you')"], os.environ)


def test_a_command_that_fails_has_no_time() -> None:
    with pytest.raises(BenchError, match="exited 3: broken"):
        run_time(
            [sys.executable, "-c", "import sys; print('broken', file=sys.stderr); sys.exit(3)"]
        )


def test_both_sides_run_equally_often_and_medians_are_compared() -> None:
    ours, rival = iter([9.0, 1.0, 3.0, 2.0]), iter([9.0, 4.0, 8.0, 6.0])
    result = run(Bench("x", lambda: next(ours), "y", lambda: next(rival), aim="fast", rounds=3))
    assert (result.ours_median, result.rival_median, result.ours_best) == (2.0, 6.0, 1.0)
    assert result.ratio == pytest.approx(1 / 3)
    assert next(ours, None) is next(rival, None) is None
    assert table([result]).splitlines()[1].split() == (
        ["x", "2000.0", "1000.0", "y", "6000.0", "4000.0", "0.33", "fast"]
    )


def test_nineteen_of_twenty_keys_stay_under_the_p95() -> None:
    assert p95([float(n) for n in range(1, 101)]) == 95.0
    assert p95([1.0]) == 1.0


def test_a_row_counts_only_in_the_cursors_colour() -> None:
    text = "\x1b[1;38;2;1;2;3;48;2;18;52;86mgroup-003  \x1b[0m\x1b[48;2;1;1;1mgroup-004\x1b[0m"
    assert [m[1].strip() for m in CURSOR.finditer(text)] == ["group-003"]


def test_hosts_that_hang_are_not_waited_for() -> None:
    fleet = Fleet(3)
    try:
        fleet.hang(1)
        assert ours(fleet, 2).processor > 0
        assert alone(fleet, 2).wall > 0
        with pytest.raises(BenchError, match="exited 1"):
            spent([sys.executable, "-c", "raise SystemExit(1)"])
    finally:
        fleet.close()
