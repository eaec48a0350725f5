"""Which file to execute: a program's name, or the path that a person gave for it."""

from __future__ import annotations

import posixpath
import re

_PYTHON = re.compile(r"^python(\d+(\.\d+)*)?$")
_SCRIPTS = (".sh", ".py", ".bash")


def is_program(path: str, program: str) -> bool:
    """Whether `path` names the executable itself rather than a venv or conda prefix.

    It does when its last part is the program's own name (for Python, any `python3.11`) or ends like
    a script. A trailing slash always means a prefix.
    """
    last = posixpath.basename(path)
    if last == program or last.endswith(_SCRIPTS):
        return True
    return bool(_PYTHON.match(program) and _PYTHON.match(last))


def locate(program: str, executable: str | None) -> str:
    """The path to execute `program` by: itself where nothing was said; the given path; or the
    program inside the given prefix's `bin` (or inside the given folder when that is a `bin`)."""
    if not executable or "/" in program:
        return program
    if is_program(executable, program):
        return executable
    folder = executable.rstrip("/") or "/"
    if posixpath.basename(folder) != "bin":
        folder = posixpath.join(folder, "bin")
    return posixpath.join(folder, program)


def is_prefix(executable: str | None, program: str) -> bool:
    """Whether `executable` is a prefix, so that other programs may be found in it as well."""
    return bool(executable) and not is_program(executable or "", program)
