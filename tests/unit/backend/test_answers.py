"""Small answers read from the outside: what an engine holds, and which pair served a request."""

from __future__ import annotations

import pytest

from backend.domain.canary import served_by
from backend.observe.health import goal, in_flight

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
vllm:num_requests_running{{engine="1",model_name="m"}} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{{engine="0"}} 900.0
"""
SGLANG = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 2.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 3.0
"""


@pytest.mark.parametrize(
    ("page", "held"),
    [
        (VLLM.format(running="2.0", waiting="4.0"), 7),
        (VLLM.format(running="-1.0", waiting="0"), 0),
        (VLLM.format(running="NaN", waiting="0"), None),
        (SGLANG, 5),
        ("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 0.0\n", None),
        ("# TYPE up gauge\nup 1\n", None),
        ("", None),
        ("<html><body>404</body></html>\n", None),
        (VLLM.format(running="2.0", waiting="4.0")[:180], None),
    ],
)
def test_what_an_engine_holds(page: str, held: float | None) -> None:
    assert in_flight(page) == held


DONE = """# TYPE vllm:request_success_total counter
vllm:request_success_total{{finished_reason="stop"}} {done}
vllm:request_success_total{{finished_reason="length"}} 1.0
"""
INF = float("inf")


@pytest.mark.parametrize(
    ("page", "before", "after"),
    [
        (VLLM.format(running="1", waiting="4") + DONE.format(done=10), INF, 17),  # 2 + 11 + 4
        (VLLM.format(running="1", waiting="9") + DONE.format(done=13), 17, 17),
        (VLLM.format(running="1", waiting="9") + DONE.format(done=14), 17, 0),
        (VLLM.format(running="1", waiting="0") + DONE.format(done=10), INF, 0),
        (VLLM.format(running="1", waiting="4"), INF, INF),  # it does not count what it finished
        (SGLANG, INF, INF),
        (SGLANG.replace("3.0", "0.0"), INF, 0),
        ("", 17, 17),
        ("", INF, INF),
    ],
)
def test_a_decode_has_begun_what_waited_there(page: str, before: float, after: float) -> None:
    assert goal(page, before) == after


ID = "cmpl-___prefill_addr_{}___decode_addr_{}_0f3a"


@pytest.mark.parametrize(
    ("response", "pair"),
    [
        (ID.format("10.0.0.1:40000", "10.0.0.2:40128"), "10.0.0.1:40000 -> 10.0.0.2:40128"),
        (ID.format("gpu_1:40000", "gpu_2.lan:40128"), "gpu_1:40000 -> gpu_2.lan:40128"),
        (ID.format("[fd00::1]:40000", "[fd00::2]:40128"), "[fd00::1]:40000 -> [fd00::2]:40128"),
        ("___prefill_addr_a:1___decode_addr_b:2", "a:1 -> b:2"),
        ("cmpl-0f3a", ""),
        ("cmpl-___prefill_addr_a:1", ""),
        ("cmpl-___prefill_addr____decode_addr__", ""),
        ("", ""),
    ],
)
def test_which_pair_served(response: str, pair: str) -> None:
    assert served_by(response) == pair
