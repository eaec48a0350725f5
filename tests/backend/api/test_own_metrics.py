"""The backend's own metrics page, the dashboard made for it, and its log as JSON."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from backend.api.app import create_app
from backend.bootstrap import build
from backend.domain.errors import Invalid
from backend.logsetup import JsonLines, log_to
from backend.paths import Paths
from backend.services import own_metrics

DASHBOARD = Path(__file__).parents[3] / "docs" / "grafana" / "pdtui.json"
NAMED = re.compile(r"\bpdtui_[a-z_]+")


async def test_the_page_is_one_that_prometheus_reads(tmp_path: Path) -> None:
    async with build(Paths.default(tmp_path)) as backend:
        transport = httpx.ASGITransport(app=create_app(backend, "1.2.3"))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            answer = await http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    families = {f.name: f for f in text_string_to_metric_families(answer.text)}
    (info,) = families["pdtui_build_info"].samples
    assert info.labels == {"version": "1.2.3"}
    assert {s.labels["status"]: s.value for s in families["pdtui_groups"].samples} == {
        "Stopped": 0, "Pending": 0, "Partially ready": 0, "Running": 0,
    }  # fmt: skip
    assert "process_resident_memory_bytes" in families


def test_the_dashboard_asks_for_nothing_that_is_not_there() -> None:
    source = Path(own_metrics.__file__).read_text(encoding="utf-8")
    there = set(NAMED.findall(source))
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {n for p in board["panels"] for t in p["targets"] for n in NAMED.findall(t["expr"])}
    assert len(asked) > 8
    assert {n.removesuffix("_total") for n in asked} <= there
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])


def test_a_line_of_the_log_is_one_json_object_without_secrets() -> None:
    record = logging.LogRecord(
        "backend.x", logging.WARNING, "f", 1, "HF_TOKEN=hf_abc of %s\nsecond line", ("chat",), None
    )
    body = json.loads(JsonLines().format(record))
    assert body["level"] == "warning"
    assert body["logger"] == "backend.x"
    assert "hf_abc" not in body["message"]
    assert "of chat" in body["message"]


def test_another_form_of_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="PDTUI_LOG_FORMAT is 'xml'"):
        log_to(tmp_path / "log", form="xml")
