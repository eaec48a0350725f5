"""How long the rules take on a large document, and `pdtui check` on its file."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import yaml

from backend.adapters.recipes import load_catalogue
from backend.domain.documents import parse_deployment
from backend.domain.rules.known import Known
from backend.domain.rules.table import judge
from tests.bench.runner import Bench, BenchError
from tests.bench.start import IMPORT_TEXTUAL, PDTUI, run_time

LINES = 200


def large_document() -> str:
    """A deployment of two roles with so many lines of parameters and environment."""
    head = [
        "apiVersion: pdtui/v1", "kind: Deployment", "metadata: {name: large}", "spec:",
        "  model: /data/models/Qwen3-32B", "  engine: vllm", "  accelerators: 4",
        "  disaggregation: {mode: vllm-nixl}", "  env:",
    ]  # fmt: skip
    roles: list[str] = ["  roles:"]
    for role in ("prefill", "decode"):
        roles += [f"    {role}:", "      replicas: 2", "      parameters:"]
        roles += ["        - --max-model-len=32768", "        - --dtype bfloat16"]
        roles += [f"        - --some-flag-{n} {n}" for n in range(60)]
    env = [f"    SETTING_{n}: value-{n}" for n in range(LINES - len(head) - len(roles))]
    return "\n".join([*head, *env, *roles]) + "\n"


def benches() -> list[Bench]:
    """The comparisons of this file."""
    text = large_document()
    assert text.count("\n") == LINES
    document = parse_deployment(yaml.safe_load(text))
    known = Known(load_catalogue(), inventory=False)

    def rules() -> float:
        begun = time.perf_counter()
        found = judge(document, known)
        taken = time.perf_counter() - begun
        if found:
            raise BenchError(f"the document is not fine: {found[0].message}")
        return taken

    def reading() -> float:
        begun = time.perf_counter()
        yaml.safe_load(text)
        return time.perf_counter() - begun

    def command() -> float:
        with tempfile.TemporaryDirectory(prefix="pdtui-bench-") as folder:
            file = Path(folder, "large.yaml")
            file.write_text(text)
            return run_time([*PDTUI, "check", str(file)])

    return [
        Bench("rules, 200 lines", rules, "yaml.safe_load of it", reading, aim="under 5 ms",
              rounds=50),
        Bench("pdtui check, 200 lines", command, "import textual",
              lambda: run_time(IMPORT_TEXTUAL), aim="under 500 ms"),
    ]  # fmt: skip
