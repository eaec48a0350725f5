"""Where a group answers and what is to be scraped, as an outsider finds them; and a deletion."""

from __future__ import annotations

import httpx
import pytest

from tests.live.lab import Lab, deployment, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


async def test_endpoints_answer_and_every_target_has_metrics(lab: Lab) -> None:
    await lab.add_hosts()
    await lab.asked(lambda c: c.apply(deployment(lab.model)))
    group = await lab.until("chat", serving(1, 1))
    (row,) = await lab.asked(lambda c: c.endpoints())
    assert group.endpoint is not None
    assert (row.group, row.url, row.status) == ("chat", group.endpoint.url, "Running")
    targets = await lab.asked(lambda c: c.scrape_targets())
    assert {t["labels"]["instance"] for t in targets} == {m.id for m in group.members}
    assert {t["labels"]["role"] for t in targets} == {"prefill", "decode", "router"}
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        body = {"model": row.model, "prompt": "Who are you?", "max_tokens": 2}
        answer = await http.post(f"{row.url}/completions", json=body)
        assert answer.status_code == 200, answer.text
        for target in targets:
            (address,) = target["targets"]
            page = await http.get(f"http://{address}{target['labels']['__metrics_path__']}")
            own = "vllm_router" if target["labels"]["role"] == "router" else "vllm:num_requests"
            assert own in page.text, target

    decode = next(m for m in group.members if m.role == "decode")
    asked = await lab.asked(lambda c: c.delete_instance("chat", decode.id, dry_run=True))
    assert asked.warnings[0].startswith("No decode member is left")
    assert (await lab.asked(lambda c: c.group("chat"))).members == group.members
    done = await lab.asked(lambda c: c.delete_instance("chat", decode.id))
    assert done == asked
    await lab.until(
        "chat", lambda g: serving(1, 1)(g) and decode.id not in {m.id for m in g.members}
    )
