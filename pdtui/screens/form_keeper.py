"""What surrounds the form: opening it, keeping its draft, its plan, saving and leaving."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdtui import external
from pdtui.i18n import tr
from pdtui.present import plans
from pdtui.present.cells import Line, Span
from pdtui.present.problems import gravest
from pdtui.screens.dialogs.confirm import Confirm, LineQuestion
from pdtui.screens.form import FormScreen
from pdtui.state import drafts
from pdtui.state.document import get
from pdtui.state.drafts import Draft
from pdtui.state.form import Form, blank

if TYPE_CHECKING:
    from backend.domain.errors import PdError
    from backend.domain.views import GroupView, ModeView, RenderedView
    from pdtui.app import Console


class Keeper:
    """Writes one form's draft, one write after the other, the newest text last."""

    def __init__(self, console: Console, path: Path) -> None:
        self._console = console
        self._path = path
        self._lock = asyncio.Lock()
        self._serial = 0

    def keep(self, form: Form, text: str, source: str) -> None:
        """Write the draft soon."""
        self._serial += 1
        self._run(self._save(self._serial, self._draft(form, text, source, os.getpid())))

    def forget(self) -> None:
        """The draft is not needed any more."""
        self._serial += 1
        self._run(self._drop())

    async def release(self, form: Form, text: str, source: str) -> None:
        """Write the draft now, for any console to take up."""
        self._serial += 1
        await self._save(self._serial, self._draft(form, text, source, 0))

    def _draft(self, form: Form, text: str, source: str, owner: int) -> Draft:
        now = self._console.now()
        return Draft(
            self._path, form.document, form.original, form.version, now, owner, text, source
        )

    def _run(self, work) -> None:  # type: ignore[no-untyped-def]
        self._console.run_worker(work, name="draft", group="call.draft", exit_on_error=False)

    async def _save(self, serial: int, draft: Draft) -> None:
        async with self._lock:
            if serial != self._serial:
                return
            try:
                await asyncio.to_thread(drafts.save, draft)
            except OSError as error:
                self._console.say(tr("draft.failed", path=draft.path, why=error.strerror), "bad")

    async def _drop(self) -> None:
        async with self._lock:
            try:
                await asyncio.to_thread(drafts.drop, self._path)
            except OSError as error:
                self._console.say(tr("draft.failed", path=self._path, why=error.strerror), "bad")


# opening


def open_form(
    console: Console, form: Form, *, path: Path | None = None, text: str = "", source: str = ""
) -> None:
    """Show a form once the modes are known; `path` is the draft it came from."""
    if console.session is None:
        return

    def shown(modes: tuple[ModeView, ...]) -> None:
        keeper = Keeper(console, path or drafts.new_path(console.state_dir))
        if console.current_mode != "groups":
            console.switch_mode("groups")
        console.push_screen(
            FormScreen(replace(form, modes=modes), keeper, text=text, source=source)
        )

    console.session.modes(shown, opens=True)


def new(console: Console) -> None:
    """An empty form, or the draft that was left."""

    async def look() -> None:
        try:
            draft = await asyncio.to_thread(drafts.left, console.state_dir)
            if draft is None:
                open_form(console, Form(blank()))
                return
        finally:
            console.release_keys()
        console.drop_keys()

        def answered(yes: bool | None) -> None:
            if yes:
                take_up(console, draft)
            elif yes is False:
                open_form(console, Form(blank()))

        console.push_screen(LineQuestion(_offer(console, draft, tr("draft.else_new"))), answered)

    console.hold_keys()
    console.run_worker(look(), name="drafts", group="call.drafts", exit_on_error=False)


def edit(console: Console, name: str) -> None:
    """The stored document of a deployment."""
    group = console.store.groups.get(name)
    version = group.version if group else 0

    async def shown(document: dict[str, Any]) -> None:
        try:
            source = await asyncio.to_thread(drafts.source, console.state_dir, name)
            open_form(console, Form(document, document, version=version), source=source)
        finally:
            console.release_keys()

    def read(document: dict[str, Any]) -> None:
        console.hold_keys()
        console.run_worker(shown(document), name="source", group="call.source", exit_on_error=False)

    if console.session:
        console.session.document(name, read)


async def offer_draft(console: Console) -> None:
    """At the start: offer what an earlier console left unfinished."""
    draft = await asyncio.to_thread(drafts.left, console.state_dir)
    if draft is None or console.read_only:
        return

    def answered(yes: bool | None) -> None:
        if yes:
            take_up(console, draft)

    console.push_screen(LineQuestion(_offer(console, draft, tr("draft.else_later"))), answered)


def take_up(console: Console, draft: Draft) -> None:
    """Go on with a draft."""
    form = Form(draft.document, draft.original, version=draft.version)
    open_form(console, form, path=draft.path, text=draft.text, source=draft.source)


def _offer(console: Console, draft: Draft, otherwise: str) -> list[Line]:
    from pdtui.present.numbers import since

    name = draft.name or tr("draft.unnamed")
    age = since(console.now(), draft.saved)
    return [(Span(tr("draft.offer", name=name, age=age)),), (Span(otherwise, "dim"),)]


# leaving


def ask_to_leave(screen: FormScreen) -> None:
    """Leave and keep the draft, or stay."""

    def answered(yes: bool | None) -> None:
        if yes:
            screen.leave(keep=True)

    lines: list[Line] = [(Span(tr("leave.means")),)]
    dialog = Confirm(tr("leave.title"), lines, tr("leave.yes"), no=tr("leave.no"))
    screen.console.push_screen(dialog, answered)


def ask_to_discard(screen: FormScreen) -> None:
    """Drop what was written."""
    if not screen.form.changed:
        screen.leave(keep=False)
        return

    def answered(yes: bool | None) -> None:
        if yes:
            screen.leave(keep=False)

    lines: list[Line] = [(Span(tr("discard.means")),)]
    dialog = Confirm(tr("discard.title"), lines, tr("discard.yes"), danger=True)
    screen.console.push_screen(dialog, answered)


# saving


def plan_of(screen: FormScreen) -> list[Line]:
    """What saving would do."""
    store = screen.console.store
    form = screen.form
    group = store.groups.get(form.name) if form.original is not None else None
    lines = plans.apply(form.output(), form.original, group, list(store.hosts.values()))
    if group is not None and form.version and group.version != form.version:
        text = tr("plan.apply.newer", version=group.version, began=form.version)
        lines = [(Span(text, "bad"),), *lines]
    return lines


def show_plan(screen: FormScreen) -> None:
    """The plan as a page."""
    from pdtui.screens.text import TextScreen

    lines = plan_of(screen)
    screen.console.push_screen(
        TextScreen("groups", [*screen.path(), tr("plan.title")], lambda: lines)
    )


def save(screen: FormScreen) -> None:
    """Save by plan; what is refused is shown at its field instead."""
    if screen.bad_text:
        screen.say(tr("form.bad_text"), "bad")
        return
    worst = gravest(screen.problems)
    if screen.state == "checked" and worst and worst.verdict == "refused":
        screen.show_problem(worst)
        screen.say(tr("form.refused"), "bad")
        return
    if not screen.form.changed:
        screen.say(tr("form.unchanged"), "dim")
        return

    name = screen.form.name
    group = screen.console.store.groups.get(name) if screen.form.original is not None else None
    etag = group.etag if group else ""  # of what the plan shows beside the form

    def answered(yes: bool | None) -> None:
        if yes:
            _apply(screen, etag)

    screen.console.push_screen(
        Confirm(tr("save.title", name=name), plan_of(screen), tr("save.yes")), answered
    )


def _apply(screen: FormScreen, etag: str) -> None:
    console = screen.console
    document, is_new = screen.form.output(), screen.form.original is None
    name = str(get(document, "metadata.name") or "")

    def done(group: GroupView) -> None:
        if not screen.is_mounted:
            return
        screen.leave(keep=False)
        if "#" in screen.source:
            console.run_worker(
                asyncio.to_thread(drafts.keep_source, console.state_dir, name, screen.source),
                name="source", group="call.source", exit_on_error=False,
            )  # fmt: skip
        console.store.put_group(group)
        if is_new:
            console.open_group(name)
        console.call_after_refresh(
            console.say, tr("done.apply", name=name, version=group.version), "ok"
        )

    def failed(error: PdError) -> bool:
        if error.status not in (400, 409, 412, 422):
            return False
        screen.problems = list(error.problems)
        screen.state = "checked"
        screen.show_problem(error.problem)
        screen.fill()
        screen.say(tr("form.refused"), "bad")
        return True

    if console.session:
        console.session.apply(document, done, failed, etag=etag)


def show_command(screen: FormScreen) -> None:
    """What would be started for the role of this tab, and for the others."""
    from pdtui.screens.rendered import RenderedScreen

    console, path, role = screen.console, screen.path(), str(screen.tab)

    def shown(found: tuple[RenderedView, ...]) -> None:
        console.push_screen(RenderedScreen(path, found, role))

    def failed(error: PdError) -> bool:
        if error.status not in (400, 422):
            return False
        console.report(error)
        return True

    if console.session:
        console.session.render(screen.form.output(), shown, failed)


def open_editor(screen: FormScreen) -> None:
    """The document in the user's editor, and back."""
    argv = external.editor(os.environ)
    if not argv:
        screen.say(tr("editor.none"), "warn")
        return
    text = screen.bad_text or screen.written(screen.form.output())

    async def work() -> None:
        try:
            changed = await external.edit(screen.console, argv, text, ".yaml")
        except OSError as error:
            screen.say(tr("editor.failed", why=error), "bad")
            return
        if changed != text:
            screen.take_text(changed)

    screen.run_worker(
        work(), name="editor", group="call.editor", exclusive=True, exit_on_error=False
    )
