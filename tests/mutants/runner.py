"""Runs tests on mutants: each mutant lives in a child process that ends with its first failure."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

from tests.mutants.mutate import Mutant, mutants

SECONDS = 30
"""Processor time a mutant gets; one that runs longer is in an endless loop, so it is noticed."""
MEMORY = 3 << 30
FAILED = 7
LASTING = {"session", "package"}
Test = Callable[[], Any]


class Runner:
    """A pytest plug-in. First every test runs as it is, through pytest. Those whose fixtures last
    the whole run are then called by themselves: once to see which lines they run, and for each
    mutant those that run a changed line, its function's earlier killers first."""

    def __init__(self, modules: Sequence[str]) -> None:
        self.judged = 0
        self.alive: list[Mutant] = []
        self._files = {str(importlib.import_module(m).__file__): m for m in modules}
        self._tests: list[Test] = []
        self._reach: dict[tuple[str, int], list[int]] = {}
        self._killers: dict[tuple[str, str], list[int]] = {}

    @pytest.hookimpl
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Keeps a test that can be called again without pytest."""
        if not isinstance(item, pytest.Function):
            return
        names = set(inspect.signature(item.obj).parameters)
        drawn = set(item.callspec.params) if hasattr(item, "callspec") else set()
        fixtures = item._fixtureinfo.name2fixturedefs
        if all(n in drawn or fixtures[n][-1].scope in LASTING for n in names):
            given = {n: v for n, v in item.funcargs.items() if n in names}
            self._tests.append(functools.partial(item.obj, **given))

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of pytest's own loop."""
        items = session.items
        for item, following in zip(items, [*items[1:], items[0]], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return True
        self._look()
        gc.collect()
        gc.freeze()  # a child copies no page only because a collector marked it
        for path, module in self._files.items():
            for mutant in mutants(module, Path(path).read_text(encoding="utf-8")):
                self._judge(mutant)
        return True

    def _look(self) -> None:
        """Which lines each test runs."""
        for number, test in enumerate(self._tests):
            ran: set[tuple[str, int]] = set()

            def trace(frame: FrameType, event: str, arg: Any, ran: Any = ran) -> Any:
                module = self._files.get(frame.f_code.co_filename)
                if module is None:
                    return None
                ran.add((module, frame.f_lineno))
                return trace

            sys.settrace(trace)
            try:
                test()
            finally:
                sys.settrace(None)
            for line in ran:
                self._reach.setdefault(line, []).append(number)

    def _judge(self, mutant: Mutant) -> None:
        target = _function(sys.modules[mutant.module], mutant.function)
        code = _code(mutant.code, mutant.function) if target is not None else None
        tests: Sequence[int] = range(len(self._tests))
        if code is not None:
            reach = [self._reach.get((mutant.module, line), []) for line in mutant.lines]
            tests = sorted({n for found in reach for n in found})
        first = self._killers.setdefault((mutant.module, mutant.function), [])
        order = [*(n for n in first if n in tests), *(n for n in tests if n not in set(first))]
        killer = self._in_child(order, mutant, target, code)
        self.judged += 1
        if killer is None:
            self.alive.append(mutant)
            print(f"lives: {mutant.name}: {mutant.change}", flush=True)
        elif killer >= 0:
            if killer in first:
                first.remove(killer)
            first.insert(0, killer)
        if self.judged % 100 == 0:
            print(f"{self.judged} judged, {len(self.alive)} live", flush=True)

    def _in_child(
        self, order: list[int], mutant: Mutant, target: Any, code: CodeType | None
    ) -> int | None:
        """Which test failed: its number, -1 where the program did not come so far, or None."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            ended = 1
            try:
                os.close(reader)
                ended = self._child(order, mutant, target, code, writer)
            finally:
                os._exit(ended)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            said = stream.read()
        status = os.waitpid(child, 0)[1]
        if os.waitstatus_to_exitcode(status) == 0:
            return None
        return int(said) if said else -1

    def _child(
        self, order: list[int], mutant: Mutant, target: Any, code: CodeType | None, writer: int
    ) -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(20 * SECONDS)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        _apply(mutant, target, code)
        for number in order:
            try:
                self._tests[number]()
            except BaseException:  # noqa: BLE001 - whatever it is, the mutant was noticed
                os.write(writer, str(number).encode())
                return FAILED
        return 0


def _apply(mutant: Mutant, target: Any, code: CodeType | None) -> None:
    """Makes the change in this process: in one function, or in all that its module defines."""
    module = sys.modules[mutant.module]
    if code is not None:
        target.__code__ = code
        return
    before = dict(vars(module))
    exec(mutant.code, vars(module))
    for other in list(sys.modules.values()):
        if getattr(other, "__name__", "").partition(".")[0] in {"backend", "tests", "modes"}:
            for name, value in before.items():
                if other is not module and vars(other).get(name, other) is value:
                    setattr(other, name, vars(module)[name])


def _function(module: ModuleType, name: str) -> Any:
    """The living function of that name, whose code can be exchanged; None for anything else."""
    found: Any = module
    for part in name.split("."):
        found = vars(found).get(part) if part else None
        if found is None:
            return None
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, functools.cached_property):
        found = found.func
    return found if hasattr(found, "__code__") else None


def _code(module: CodeType, name: str) -> CodeType | None:
    return next((c for c in _codes(module) if c.co_qualname == name), None)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)
