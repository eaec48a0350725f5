"""What a release is made of agrees with itself: version, changelog, pins, licence."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import pdtui

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<when>\S+))?$", re.MULTILINE)


def pins() -> dict[str, Version]:
    """The constraints file, by canonical name. A line that is no exact pin fails here."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, exact, number = line.partition("==")
            assert exact, f"constraints.txt: {line!r} is no exact pin"
            found[canonicalize_name(name)] = Version(number)
    return found


def declared() -> list[Requirement]:
    """Everything pyproject.toml asks for, extras and build system included."""
    project = PROJECT["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = [*project["dependencies"], *extras, *PROJECT["build-system"]["requires"]]
    return [Requirement(line) for line in lines]


def test_the_changelog_starts_with_unreleased_and_then_this_version() -> None:
    headings = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert [heading[0] for heading in headings[:2]] == ["Unreleased", pdtui.__version__]
    numbers = [Version(heading[0]) for heading in headings[1:]]
    assert numbers == sorted(numbers, reverse=True)
    for number, when in headings[1:]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d|unreleased", when), f"{number}: no date"


@pytest.mark.parametrize("requirement", declared(), ids=lambda r: r.name)
def test_every_requirement_is_pinned_within_its_range(requirement: Requirement) -> None:
    pinned = pins().get(canonicalize_name(requirement.name))
    assert pinned is not None, f"{requirement.name} is not in constraints.txt: run `make pins`"
    assert pinned in requirement.specifier


def closure(names: set[str]) -> set[str]:
    """`names` and what they require here, transitively, by canonical name."""
    todo, seen = set(names), set[str]()
    while todo:
        name = todo.pop()
        seen.add(name)
        for line in requires(name) or []:
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                todo.add(canonicalize_name(wanted.name))
        todo -= seen
    return seen


def test_what_is_installed_is_what_is_pinned() -> None:
    pinned = pins()
    names = closure({canonicalize_name(r.name) for r in declared()})
    here = {name: Version(version(name)) for name in names}
    assert here == {name: pinned.get(name) for name in names}


def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        str(path.relative_to(ROOT))
        for package in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "modes/pd-modes.yaml" in ours
    assert not (missing := ours - held), f"not in the wheel: {missing}"
    assert not (extra := {name for name in held - ours if ".dist-info/" not in name}), extra


def test_the_licence_is_the_one_that_is_named() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git checkout")
def test_what_the_build_leaves_is_ignored() -> None:
    left = [".venv/x", ".lanes/fast.xml", "pdtui/__pycache__/a.pyc", ".mypy_cache/x", "dist/x"]
    done = subprocess.run(
        ["git", "check-ignore", *left],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == left
