"""The routes on diagnosis; the stories with real logs are tests/live/test_diagnosis.py."""

from __future__ import annotations

import httpx
import pytest

from tests.backend.api.test_api import DOCUMENT


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/groups/nobody/diagnosis", "group.unknown"),
        ("/instances/nobody/diagnosis", "instance.unknown"),
        ("/instances/nobody/diagnosis?generation=2", "instance.unknown"),
    ],
)
async def test_what_is_not_there_is_said(http: httpx.AsyncClient, path: str, rule: str) -> None:
    answer = await http.get(path)
    assert answer.status_code == 404
    assert answer.json()["problems"][0]["rule"] == rule


async def test_a_group_without_members_has_nothing_to_tell(http: httpx.AsyncClient) -> None:
    assert (await http.put("/deployments/chat", json=DOCUMENT)).status_code == 200
    answer = await http.get("/groups/chat/diagnosis")
    assert answer.status_code == 200
    assert answer.json() == {"group": "chat", "causes": [], "members": []}
