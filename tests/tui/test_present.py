"""Rows, sentences and numbers, without a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from backend.domain.errors import KINDS
from backend.domain.instance import State
from backend.domain.views import GroupStatus, GroupView, HostView, Mark, MemberView, PhaseView
from pdtui.i18n import tr
from pdtui.i18n.catalog import word
from pdtui.i18n.en import TEXT
from pdtui.present import groups, members, plans
from pdtui.present.cells import Line, Span, fit, plain
from pdtui.present.numbers import age, chip, count, mib, runs, since
from pdtui.present.status import ASCII, UNICODE, group_look, host_look, member_look
from pdtui.state.query import parse, select
from pdtui.widgets.lines_view import wrap
from tests.tui.factories import NOW, degraded, forming, host, member, restarting, running, stopped


def text(lines: list[Line]) -> str:
    return "\n".join(plain(line) for line in lines)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"), (-1, "-"), (0, "0s"), (59.9, "59s"), (60, "1m00s"), (599, "9m59s"),
        (600, "10m"), (3600, "1h00m"), (36_000, "10h"), (86_400, "1d00h"), (864_000, "10d"),
    ],
)  # fmt: skip
def test_age(seconds: float | None, shown: str) -> None:
    assert age(seconds) == shown
    assert len(shown) <= 6


def test_other_numbers() -> None:
    assert runs([3, 1, 2, 7, 7]) == "1-3,7"
    assert runs([]) == "-"
    assert mib(0) == "-"
    assert mib(512) == "512MiB"
    assert mib(46_068) == "45GiB"
    assert since(NOW, 0) == "-"
    assert count(1, "member", "members") == "1 member"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA A100-SXM4-80GB", "A100"), ("L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"), ("Tesla T4", "T4"), ("910B3", "910B3"),
        ("Ascend 910B3", "910B3"), ("NVIDIA H100 PCIe", "H100"), ("", ""),
    ],
)  # fmt: skip
def test_chip_names_are_short(name: str, shown: str) -> None:
    assert chip(name) == shown


def test_every_state_has_a_glyph_a_word_and_a_tone() -> None:
    for status in get_args(GroupStatus):
        look = group_look(running(status=status))
        assert look.word == status
    for state in get_args(State):
        assert member_look(member("m", "prefill", "h", state=state)).word
    for state in get_args(HostView.model_fields["state"].annotation):
        assert host_look(host("h", 0, state=state)).word
    assert group_look(running(deleting=True)).word == "Deleting"


def test_glyphs_are_one_cell_and_ascii_has_them_all() -> None:
    from rich.cells import cell_len

    for name, glyph in vars(UNICODE).items():
        assert all(cell_len(c) == 1 for c in glyph), name
        assert getattr(ASCII, name).isascii()


def test_ratio_stands_beside_the_status() -> None:
    line = plain(groups.headline(degraded()))
    assert line == "● Running   Ratio 2:1 (currently 1:1)   ◷ Config changed (c shows it)"
    assert plain(groups.headline(running())) == "● Running   Ratio 2:1"
    assert plain(groups.headline(stopped())) == "○ Stopped   stopped by hand"


def test_marks_that_have_a_place_are_not_listed_twice() -> None:
    view = running(
        config_changed=True,
        marks=(
            Mark(id="config_changed", text="Config changed"),
            Mark(id="ratio", text="Ratio 2:1 (currently 1:1)"),
            Mark(id="unverified", text="unverified: pairing.dtype"),
        ),
    )
    shown = text(groups.head(view, 80, 10))
    assert shown.count("Config changed") == 1
    assert "unverified: pairing.dtype" in shown


@pytest.mark.parametrize("most", range(4, 12))
def test_the_head_never_takes_more_than_it_may(most: int) -> None:
    for view in (running(), degraded(), forming(), restarting(), stopped()):
        lines = groups.head(view, 80, most)
        assert len(lines) <= most
        assert plain(lines[0]) == plain(groups.headline(view))
        assert "Endpoint" in text(lines) or view.phase


def test_a_phase_shows_what_is_done_and_what_blocks() -> None:
    view = running(phase=PhaseView(name="stop members", done=1, total=3))
    assert plain(groups.phases(view)) == (
        "✓ drain → ✓ stop router → stop members 1/3 → confirm gone → start"
    )
    assert "gpu-2 has not confirmed" in text(groups.head(restarting(), 80, 10))


def test_why_there_is_no_endpoint() -> None:
    assert groups.no_endpoint(forming()) == "not yet: waiting for a ready member of decode"
    assert groups.no_endpoint(running(endpoint=None)) == "not yet: waiting for the router"
    assert "stopped" in groups.no_endpoint(stopped())


def test_members_stand_under_their_role() -> None:
    view = degraded()
    keys = [r.key for r in members.rows(view, NOW)]
    assert keys == [
        "role:prefill", "deepseek-v31-p0", "deepseek-v31-p1",
        "role:decode", "deepseek-v31-d0", "role:router", "deepseek-v31-router",
    ]  # fmt: skip
    assert members.role_of("role:decode", view) == "decode"
    assert members.role_of("deepseek-v31-p1", view) == "prefill"
    assert members.role_of("nobody", view) is None
    headings = text([r.cells[0].spans for r in members.rows(view, NOW) if r.heading])
    assert "prefill  1 of 2 ready  3 after the restart" in headings


def test_a_role_without_members_can_still_be_chosen() -> None:
    view = stopped()
    assert [r.key for r in members.rows(view, NOW)] == ["role:replica"]


def test_notes_say_when_the_next_start_is_due() -> None:
    waiting = next(m for m in forming().members if m.state == "exited")
    assert plain(members.note(waiting, NOW)) == (
        "next start in 17s  ended with exit code 1: torch.OutOfMemoryError: CUDA out of memory"
    )
    assert members.ports(waiting) == "40010-40012"


def _scaled(view: GroupView, **counts: int) -> str:
    return text(plans.scale(view, counts))


def test_scale_plans() -> None:
    view = running()
    assert "starts 2 members" in _scaled(view, prefill=4)
    assert "takes 1 member out" in _scaled(view, prefill=1)
    assert "serves nothing" in _scaled(view, decode=0)
    assert _scaled(view, prefill=2) == ""
    for policy, says in [
        ("dynamic", "through its API"), ("restart", "is replaced"), ("manual", "is yours"),
    ]:  # fmt: skip
        assert says in _scaled(running(membership=policy), prefill=3)


def test_scale_while_the_configuration_changed() -> None:
    view = degraded()
    assert plans.wanted(view) == {"prefill": 3, "decode": 1}
    assert "stored only" in _scaled(view, prefill=4)
    assert "is replaced" not in _scaled(view, prefill=4), "nothing moves, so no router talk"
    assert "takes 1 member out" in _scaled(view, prefill=1)
    assert "the stored count is dropped" in _scaled(view, prefill=2)


def test_restart_plan_names_router_first_and_leaves_out_the_dead() -> None:
    shown = text(plans.restart(degraded())).splitlines()
    assert shown[1].strip().startswith("deepseek-v31-router")
    assert not any("deepseek-v31-p1" in line for line in shown)
    assert "  spec.env.VLLM_LOGGING_LEVEL: added DEBUG" in shown
    assert "  prefill: 3" in shown


def test_filter_language() -> None:
    rows = groups.rows([running(), degraded(), forming(), stopped()], NOW)
    columns = groups.columns()

    def found(query: str) -> list[str]:
        return [r.key for r in select(rows, columns, query)]

    assert found("") == [r.key for r in rows]
    assert found("RUNNING") == ["deepseek-v31", "qwen3-32b"]
    assert found("running !changed") == ["qwen3-32b"]
    assert found("mode:mooncake") == ["deepseek-v31", "glm-5"]
    assert found("stat:stopped") == ["baseline"]
    assert found("http://10.20.0.11") == ["qwen3-32b"]
    assert found("nothing-like-it") == []
    assert parse("!") == ()


def test_filtered_members_keep_their_headings() -> None:
    view = degraded()
    rows = select(members.rows(view, NOW), members.columns(), "crash")
    assert [r.key for r in rows] == ["role:prefill", "deepseek-v31-p1"]


@pytest.mark.parametrize("size", [8, 20, 40, 79])
def test_wrapping_loses_nothing(size: int) -> None:
    from pdtui.present import detail

    for line in (
        detail.fact("Request", 'curl http://10.0.0.1/v1 -d \'{"model":"机器机器机器"}\' ' * 3),
        detail.fact("x", "y" * 200),
        groups.headline(degraded()),
    ):
        pieces = wrap(line, size)
        assert "".join("".join(map(plain, pieces)).split()) == "".join(plain(line).split())
        from pdtui.present.cells import width

        assert all(width(p) <= size for p in pieces)


@pytest.mark.parametrize(
    ("said", "first", "second"),
    [
        ("运行中的成员不会重启，请求", "运行中的成员不会重启，", "请求"),
        ("运行中的成员不会重新启，请求", "运行中的成员不会重新", "启，请求"),
        ("运行中的成员不会重新（请求）", "运行中的成员不会重新", "（请求）"),
        ("运行中的成员 vllm-router 启动", "运行中的成员 ", "vllm-router 启动"),
    ],
)
def test_chinese_begins_beside_its_label(said: str, first: str, second: str) -> None:
    label = Span(f"{'重启':<16}")
    pieces = wrap((label, Span(said)), 40)
    assert [plain(p) for p in pieces] == [f"{label.text}{first}", " " * 13 + second]


@pytest.mark.parametrize(
    ("size", "shown"), [(4, "机… "), (5, "机器…"), (6, "机器… "), (8, "机器北京")]
)
def test_a_cut_wide_letter_leaves_no_gap_before_the_mark(size: int, shown: str) -> None:
    assert plain(fit((Span("机器北京"),), size)) == shown


def test_every_text_that_is_asked_for_is_written() -> None:
    root = Path(tr.__code__.co_filename).parents[1]
    source = "\n".join(p.read_text() for p in root.rglob("*.py") if "i18n" not in p.parts)
    asked = set(re.findall(r"\btr\(\s*[\"']([\w. ]+)[\"']", source))
    assert len(asked) > 120
    assert asked <= set(TEXT)
    for kind in KINDS:
        assert f"error.{kind}" in TEXT
    for policy in ("dynamic", "restart", "manual", "none"):
        assert {f"plan.router.{policy}", f"plan.delete.router.{policy}"} <= set(TEXT)
    for mark in get_args(Mark.model_fields["id"].annotation):
        assert f"mark.{mark}" in TEXT
    for phase in get_args(PhaseView.model_fields["name"].annotation):
        assert f"phase.{phase}" in TEXT


def test_unknown_words_are_shown_as_they_are() -> None:
    assert word("mark", "brand_new") == "brand_new"
    with pytest.raises(KeyError):
        tr("nobody.wrote.this")


def test_a_plain_member_of_an_unknown_role_is_still_shown() -> None:
    odd = MemberView(
        id="x", role="replica", host="h", state="ready", generation=1, revision="r", port=1
    )
    assert members.rows(running(members=(odd,), roles={}), NOW)[1].key == "x"
