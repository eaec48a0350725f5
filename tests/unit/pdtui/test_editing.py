"""Documents written into files that people keep: what they wrote around them stays."""

from __future__ import annotations

import copy
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.domain.errors import Invalid
from backend.domain.secrets import HIDDEN, masked
from backend.domain.yamlread import read_all
from pdtui.cli.editing import edited, place

TEXT = """\
# the group of the search team
apiVersion: pdtui/v1
kind: Deployment
metadata: {name: chat, labels: {team: search}}   # ours
spec:
  model: "/m/q"       # on every host
  engine: vllm

  parameters:
    # the longest that fits
    - --max-model-len
    - "32768"
    - --gpu-memory-utilization=0.9   # measured
  env: {HF_TOKEN: sekret}
  disaggregation:
    mode: vllm-nixl
---
# another one
kind: CacheService
metadata: {name: lm}
spec: {provider: lmcache, endpoint: "h:1"}
"""


def documents(text: str = TEXT) -> list[Any]:
    """What a text says."""
    return [copy.deepcopy(d.data) for d in read_all(text)]


def test_only_what_changed_changes(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(TEXT)
    file.chmod(0o640)
    wanted = documents()[0]
    wanted["spec"]["parameters"][1] = "65536"
    wanted["spec"]["roles"] = {"prefill": {"replicas": 2}}
    assert place(file, False, wanted)[2] is False
    lines = set(file.read_text().splitlines())
    gone = set(TEXT.splitlines()) - lines
    assert gone == {'    - "32768"'}
    assert documents(file.read_text()) == [wanted, documents()[1]]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_what_is_the_same_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    written_out = documents()[0]
    written_out["spec"]["paused"] = False
    for document in (documents()[0], written_out, masked(documents()[0])):
        assert place(tmp_path, True, document)[::2] == (file, True)
    assert file.read_text() == TEXT


def test_a_mask_leaves_the_secret_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(TEXT)
    wanted = masked(documents()[0])
    wanted["spec"]["model"] = "/m/other"
    place(file, False, wanted)
    assert HIDDEN not in file.read_text()
    assert documents(file.read_text())[0]["spec"]["env"] == {"HF_TOKEN": "sekret"}


def test_a_new_document_gets_a_file_or_the_end_of_one(tmp_path: Path) -> None:
    one, cache = documents()
    file, _, same = place(tmp_path, True, one)
    assert (file.name, same) == ("chat.yaml", False)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # it holds a secret
    assert place(tmp_path, True, cache)[0].name == "cacheservice-lm.yaml"
    place(file, False, cache)
    assert documents(file.read_text()) == [one, cache]


def test_json_stays_json(tmp_path: Path) -> None:
    one = documents()[0]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(one))
    wanted = copy.deepcopy(one)
    wanted["spec"]["model"] = "/m/中文"
    place(tmp_path, True, wanted)
    assert json.loads(file.read_text()) == wanted


def test_a_new_document_in_a_json_file_is_json(tmp_path: Path) -> None:
    one, cache = documents()
    file = tmp_path / "all.json"
    place(file, False, one)
    assert json.loads(file.read_text()) == one
    place(file, False, cache)
    assert json.loads(file.read_text()) == [one, cache]


def test_a_secret_that_is_written_out_is_for_its_owner(tmp_path: Path) -> None:
    one, cache = documents()
    file = tmp_path / "chat.yaml"
    file.write_text("kind: CacheService\nmetadata: {name: x}\n")
    file.chmod(0o664)
    place(file, False, cache)
    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    place(file, False, one)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_behind_a_link_and_line_ends_of_another_system_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_bytes(TEXT.replace("\n", "\r\n").encode())
    link.symlink_to(real)
    wanted = documents()[0]
    wanted["spec"]["engine"] = "sglang"
    place(link, False, wanted)
    assert link.is_symlink()
    raw = real.read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert raw.decode().replace("\r\n", "\n") == TEXT.replace("engine: vllm", "engine: sglang")


def test_what_only_looks_like_a_file_of_documents_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / ".hidden.yaml").write_text("a: [")
    assert place(tmp_path, True, documents()[0])[0].name == "chat.yaml"


def test_where_nothing_can_be_written_it_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for into, folder in ((tmp_path / "file" / "x", True), (tmp_path / "no" / "x.yaml", False)):
        with pytest.raises(Invalid) as caught:
            place(into, folder, documents()[0])
        assert caught.value.problem.rule == "file.unwritable"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_broken_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text("a: [\n")
    with pytest.raises(Invalid) as caught:
        place(file, False, documents()[0])
    assert caught.value.problem.rule == "file.yaml"
    assert file.read_text() == "a: [\n"


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
VALUES = st.recursive(
    st.booleans() | st.integers(-99, 99) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.sampled_from(["parameters", "env", "model", "new"]), VALUES))
def test_whatever_changes_the_text_says_it_and_keeps_its_remarks(spec: dict[str, Any]) -> None:
    wanted = documents()[0]
    wanted["spec"] = {**wanted["spec"], **spec}
    new = edited(TEXT, 0, wanted)
    assert documents(new) == [wanted, documents()[1]]
    for remark in ("# the group of the search team", "# ours", "# another one"):
        assert remark in new, new
