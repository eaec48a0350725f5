"""A reference to a secret where none is looked up is refused by name, and never passed on."""

from __future__ import annotations

from typing import Any

import pytest

from backend.domain.documents import parse_deployment
from backend.domain.errors import Invalid
from backend.domain.references import misplaced
from backend.domain.rules.words import say

REFERENCE = {"from_env": "HF_TOKEN"}


def document(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "chat"}, "spec": {"model": "/m", "engine": "vllm", **spec}}


@pytest.mark.parametrize(
    "env",
    [{"HF_TOKEN": REFERENCE}, {"A": {"from_file": "~/a"}}, {"A": {"from_command": ["pass", "a"]}},
     {"A": "{not: a reference}"}, {"A": "from_env: X"}],
)  # fmt: skip
def test_where_it_is_looked_up(env: dict[str, Any]) -> None:
    parse_deployment(document(env=env))
    parse_deployment(document(roles={"router": {"env": env}}, disaggregation={"mode": "m"}))


WRONG = [
    (document(parameters=["--x", REFERENCE]), "spec.parameters[1]"),
    (document(parameters=["--api-key={from_env: KEY}"]), "spec.parameters[0]"),
    (document(run_command=["serve", '{"from_file": "/key"}']), "spec.run_command[1]"),
    (document(env={"A": "{from_env: B}"}), "spec.env.A"),
    (document(env={"A": "Bearer {from_command: [pass, a]}"}), "spec.env.A"),
    (document(served_model_name=REFERENCE), "spec.served_model_name"),
    (document(env=REFERENCE), "spec.env"),
    (document(disaggregation={"mode": "m", "connector_extra": {"decode": {"k": REFERENCE}}}),
     "spec.disaggregation.connector_extra.decode.k"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "path"), WRONG)
def test_where_it_is_not(data: dict[str, Any], path: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_deployment(data)
    found = [p for p in refused.value.problems if p.rule == "structure.reference"]
    assert [p.path for p in found] == [path]
    assert "from_" in found[0].message
    assert ("quotes" in found[0].remedy) == (path != "")
    assert say(found[0], "en") == (found[0].message, found[0].remedy)
    message, remedy = say(found[0], "zh")
    assert found[0].values["reference"] in message
    assert "引号" in remedy


def test_a_document_that_holds_itself_comes_to_an_end() -> None:
    loop: dict[str, Any] = {"a": ["{from_env: X}"]}
    loop["self"] = loop
    assert list(misplaced(loop)) == [(("a", 0), "{from_env: X}")]
