"""The mutants themselves: what is changed, what is left alone, and that every one is undone."""

from __future__ import annotations

import ast

from tests.mutants.mutate import mutants

SOURCE = '''
"""A module."""

from typing import Literal

Word = Literal["a", "b"]
MOST = 3


class Box:
    """A box."""

    def over(self, n: int = 1) -> bool:
        """Whether it is over."""
        for size in self.sizes:
            if size is None or not n:
                continue
            yield size
        return n > MOST and "x" in self.name.lower()
'''


def changes() -> list[tuple[str, str]]:
    return [(m.function, m.change) for m in mutants("a.box", SOURCE)]


def test_each_change_is_one_and_is_shown() -> None:
    found = changes()
    assert len(found) == len(set(found))
    assert ("", "MOST = 3  ->  MOST = 4") in found
    assert ("Box.over", "if size is None or not n:  ->  if size is not None or not n:") in found
    assert ("Box.over", "if size is None or not n:  ->  if size is None and (not n):") in found
    assert ("Box.over", "continue  ->  break") in found
    assert ("Box.over", "yield size  ->  pass") in found
    whole = "return n > MOST and 'x' in self.name.lower()"
    assert ("Box.over", f"{whole}  ->  {whole.replace('>', '>=')}") in found
    assert ("Box.over", f"{whole}  ->  {whole.replace('lower', 'upper')}") in found
    assert ("Box.over", f"{whole}  ->  return None") in found


def test_a_default_belongs_to_where_the_function_is_defined() -> None:
    (default,) = [m for m in mutants("a.box", SOURCE) if "n: int=2" in m.change]
    assert default.function == "Box"


def test_what_only_says_is_left_alone() -> None:
    text = " ".join(change for _, change in changes())
    assert "XX" in text
    for said in ("XXA module.XX", "XXA box.XX", "XXWhether", "Literal", "XXaXX"):
        assert said not in text


def test_every_mutant_starts_from_the_source_as_it_is() -> None:
    plain = ast.unparse(ast.parse(SOURCE))
    found = list(mutants("a.box", SOURCE))
    for mutant in found:
        before = mutant.change.partition("  ->  ")[0]
        assert before in plain, mutant.change
        assert mutant.lines.start <= mutant.line
    assert [m.change for m in mutants("a.box", SOURCE)] == [m.change for m in found]


def test_a_long_statement_is_shown_around_its_change() -> None:
    names = ", ".join(f"'name{n}'" for n in range(40))
    shown = [m.change for m in mutants("a", f"NAMES = ({names})\n")]
    assert all(len(change) < 250 for change in shown)
    assert sum("XXname17XX" in change for change in shown) == 1
