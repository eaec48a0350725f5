"""The pages of docs/: current where they are generated, and without a dead link."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from backend.adapters.recipes import load_catalogue
from backend.domain.documents import parse_deployment
from backend.domain.rules.known import Known
from backend.domain.rules.table import judge
from docs.pages.about_fields import ABOUT
from docs.pages.fields import fields

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("README*.md")), ROOT / "CONTRIBUTING.md"]


def test_generated_pages_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_field_is_told_and_no_other() -> None:
    known = set(fields())
    own = {(model, name) for model, told in ABOUT.items() for name in told}
    shared = set(ABOUT["Overridable"])
    assert not {pair for pair in known if pair not in own and pair[1] not in shared}
    assert not {p for p in own if p[0] != "Overridable" and p not in known}


def anchors(page: Path) -> set[str]:
    """What a link may point at: headings as a forge spells them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in found}


def links(page: Path) -> Iterator[str]:
    """Links to files of ours, code blocks left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    yield from (link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_mode_has_a_page_that_says_how() -> None:
    modes = set(load_catalogue().modes)
    assert {p.stem for p in (DOCS / "how-to").glob("*.md")} >= modes


EXAMPLES = [*sorted((DOCS / "how-to").glob("*.md")), DOCS / "tutorial.md", ROOT / "README.zh.md"]


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda p: p.name)
def test_every_document_that_is_shown_can_be_saved(page: Path) -> None:
    """Nothing is refused and nothing is doubted; only a page about hosts shows no document."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    known = Known(load_catalogue(), inventory=False)
    for block in blocks:
        assert judge(parse_deployment(yaml.safe_load(block)), known) == ()
    assert blocks or page.stem == "hosts"


def test_the_chinese_readme_shows_the_same_document() -> None:
    both = [
        re.search(r"^```yaml\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.S | re.M)
        for name in ("README.md", "README.zh.md")
    ]
    assert both[0]
    assert both[1]
    assert yaml.safe_load(both[0][1]) == yaml.safe_load(both[1][1])


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    listed = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", index)}
    there = {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")} - {"README.md"}
    assert there <= listed
