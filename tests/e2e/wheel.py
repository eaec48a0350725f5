"""What a person installs: the wheel in a fresh environment, with what it asks for and nothing else.

The requirements are linked from the environment the tests run in, distribution by distribution, as
far as the wheel's own metadata leads. So nothing is downloaded, and what the wheel forgets to ask
for is not there.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LAUNCHER = """\
#!{python}
import sys
from {module} import {name}
sys.exit({name}())
"""


def build(folder: Path, kind: str = "wheel", source: Path = ROOT) -> Path:
    """The wheel or sdist of a source tree. Raises RuntimeError with what the build said."""
    folder.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder), cwd=source)
    (found,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return found


def install(wheel: Path, folder: Path, *extras: str) -> Path:
    """Install the wheel with these extras in a new environment; its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / "bin" / "python"
    found = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    site = Path(found.strip())
    for each in closure(requirements(wheel), {*extras, ""}):
        link(each, site, python)
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python),
        "install", "--quiet", "--no-index", "--no-deps", str(wheel))  # fmt: skip
    return folder / "bin"


def requirements(wheel: Path) -> list[Requirement]:
    """What the wheel's metadata asks for, extras included."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        headers = HeaderParser().parsestr(archive.read(name).decode())
    return [Requirement(line) for line in headers.get_all("Requires-Dist") or ()]


def closure(wanted: list[Requirement], extras: set[str]) -> list[Distribution]:
    """Every distribution that is asked for, by what is asked for, and so on."""
    todo = [(r, extras) for r in wanted]
    seen: dict[tuple[str, str], Distribution] = {}
    while todo:
        requirement, active = todo.pop()
        applies = [requirement.marker is None or requirement.marker.evaluate({"extra": e})
                   for e in active]  # fmt: skip
        if not any(applies):
            continue
        for extra in {*requirement.extras, ""}:
            key = (canonicalize_name(requirement.name), extra)
            if key not in seen:
                seen[key] = distribution(requirement.name)
                todo += [(Requirement(r), {extra}) for r in seen[key].requires or ()]
    return list({canonicalize_name(d.name): d for d in seen.values()}.values())


def link(found: Distribution, site: Path, python: Path) -> None:
    """One distribution's files in `site`, and its programs beside `python`."""
    for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        target = site / name
        if not target.exists():
            target.symlink_to(Path(str(found.locate_file(name))))
    for entry in found.entry_points.select(group="console_scripts"):
        program = python.with_name(entry.name)
        module, _, name = entry.value.partition(":")
        program.write_text(LAUNCHER.format(python=python, module=module, name=name))
        program.chmod(0o755)


def run(*argv: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """A program's output. Raises RuntimeError with all it said when it fails."""
    done = subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
