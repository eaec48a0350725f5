"""Traffic and link from members' figures."""

from __future__ import annotations

import pytest

from backend.domain.advice.measured import Figures, link, traffic
from backend.domain.advice.model import Link, Traffic


def test_traffic_is_the_average_over_all_decode_members() -> None:
    seen = traffic(
        [
            {"requests": 3.0, "prompt_tokens": 9000.0, "generation_tokens": 600.0},
            {"requests": 1.0, "prompt_tokens": 1000.0, "generation_tokens": 200.0},
        ]
    )
    assert seen == Traffic(2500.0, 200.0, 4.0, "measured")


@pytest.mark.parametrize("rows", [[], [{}], [{"requests": 0.0, "prompt_tokens": 5.0}]])
def test_no_requests_are_no_traffic(rows: list[Figures]) -> None:
    assert traffic(rows) == Traffic()


def test_the_link_is_the_slowest_members_bytes_over_its_time() -> None:
    fast = {"kv_bytes": 4e9, "transfers": 2.0, "kv_seconds": 0.1}  # 2 GB each in 0.1 s
    slow = {"kv_bytes": 1e9, "transfers": 1.0, "kv_seconds": 1.0}
    assert link([fast]) == Link(2e10, "measured")
    assert link([fast, slow, {}]) == Link(1e9, "measured")


@pytest.mark.parametrize("figures", [{}, {"kv_bytes": 1.0}, {"kv_bytes": 1.0, "transfers": 1.0}])
def test_what_exports_no_times_tells_no_link(figures: Figures) -> None:
    assert link([figures]) == Link()
