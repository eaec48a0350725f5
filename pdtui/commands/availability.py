"""Pure predicates: a reason why a command cannot act now, or None."""

from __future__ import annotations

from pdtui.commands.model import Context, WhyNot
from pdtui.i18n import tr


def all_of(*predicates: WhyNot) -> WhyNot:
    """The first reason of several predicates."""

    def why_not(ctx: Context) -> str | None:
        return next((reason for p in predicates if (reason := p(ctx))), None)

    return why_not


def changes(ctx: Context) -> str | None:
    """Anything that changes the backend's state needs it, and the right to."""
    if ctx.read_only:
        return tr("why.read_only")
    if not ctx.connected:
        return tr("why.disconnected")
    return None


def reads(ctx: Context) -> str | None:
    """Anything asked of the backend needs it."""
    return None if ctx.connected else tr("why.disconnected")


def unless_marked(why_not: WhyNot) -> WhyNot:
    """Marked groups are judged one by one when they are asked for; else the one at the cursor."""
    return lambda ctx: None if ctx.marked else why_not(ctx)


def markable(ctx: Context) -> str | None:
    """Only lists whose rows can be acted upon together take marks."""
    return None if ctx.markable else tr("why.no_marks")


def sortable(ctx: Context) -> str | None:
    """Only a table whose order means nothing can be sorted."""
    return None if ctx.sortable else tr("why.no_sort")


def cache(ctx: Context) -> str | None:
    """A cache service must stand under the cursor."""
    return None if ctx.cache else tr("why.no_cache")


def unused_cache(ctx: Context) -> str | None:
    """A service that a deployment uses is not deleted."""
    if ctx.cache is None:
        return tr("why.no_cache")
    used = ", ".join(ctx.cache.used_by[:3])
    return tr("why.cache_used", name=ctx.cache.name, groups=used) if used else None


def setting(ctx: Context) -> str | None:
    """A row that can be changed must stand under the cursor."""
    return None if ctx.setting else tr("why.no_setting")


def member(ctx: Context) -> str | None:
    """An instance must stand under the cursor."""
    return None if ctx.member else tr("why.no_instance")


def group(ctx: Context) -> str | None:
    """A group must stand under the cursor."""
    return None if ctx.group else tr("why.no_group")


def _settled(ctx: Context) -> str | None:
    g = ctx.group
    if g is None:
        return tr("why.no_group")
    if g.deleting:
        return tr("why.deleting", name=g.name)
    return None


def can_scale(ctx: Context) -> str | None:
    """Counts may be set while the group neither restarts nor goes."""
    g = ctx.group
    if reason := _settled(ctx):
        return reason
    assert g is not None
    if g.phase:
        return tr("why.restarting", name=g.name)
    if not any(r != "router" for r in g.roles):
        return tr("why.no_roles", name=g.name)
    return None


def can_scale_role(ctx: Context) -> str | None:
    """The role under the cursor must be one with a count."""
    if ctx.role == "router":
        return tr("why.router_count")
    return can_scale(ctx)


def can_scale_down(ctx: Context) -> str | None:
    """There must be a member to stop."""
    if reason := can_scale_role(ctx):
        return reason
    g = ctx.group
    if g and ctx.role and (count := g.roles.get(ctx.role)):
        stored = count.pending if count.pending is not None else count.wanted
        if stored <= 0:
            return tr("why.none_left", role=ctx.role)
    return None


def can_restart(ctx: Context) -> str | None:
    """A restart already under way can only be forced past the host that blocks it."""
    g = ctx.group
    if reason := _settled(ctx):
        return reason
    assert g is not None
    if g.paused:
        return tr("why.paused", name=g.name)
    if g.phase and not g.phase.blocked_by:
        return tr("why.restarting", name=g.name)
    return None


def can_stop(ctx: Context) -> str | None:
    """Stopping needs something that is not stopped yet."""
    if reason := _settled(ctx):
        return reason
    return tr("why.paused", name=ctx.group.name) if ctx.group and ctx.group.paused else None


def can_start(ctx: Context) -> str | None:
    """Starting needs a stopped group."""
    if reason := _settled(ctx):
        return reason
    if ctx.group and not ctx.group.paused:
        return tr("why.not_paused", name=ctx.group.name)
    return None


def can_delete(ctx: Context) -> str | None:
    """A group that is going cannot be deleted again."""
    return _settled(ctx)


def can_delete_member(ctx: Context) -> str | None:
    """One member must stand under the cursor, of a group that stays."""
    if reason := can_scale(ctx):
        return reason
    if ctx.member is None:
        return tr("why.no_member")
    if ctx.member.role == "router":
        return tr("why.router_member")
    return None


def has_changes(ctx: Context) -> str | None:
    """There must be a saved change that does not run yet."""
    if reason := group(ctx):
        return reason
    if ctx.group and not ctx.group.config_changed:
        return tr("why.no_changes", name=ctx.group.name)
    return None


def can_edit(ctx: Context) -> str | None:
    """A deployment on its way out is not edited."""
    return _settled(ctx)


def can_override(ctx: Context) -> str | None:
    """Only a role's field that still inherits can be given a value of its own."""
    item = ctx.item
    if item is None or not item.field.inherits:
        return tr("why.no_inherit")
    return tr("why.own_already") if _is_set(ctx) else None


def can_inherit(ctx: Context) -> str | None:
    """Only a role's own value can be dropped for the deployment's."""
    item = ctx.item
    if item is None or not item.field.inherits:
        return tr("why.no_inherit")
    return None if _is_set(ctx) else tr("why.inherits_already")


def _is_set(ctx: Context) -> bool:
    return bool(ctx.form and ctx.item and ctx.form.marker(ctx.item.field) == "override")


def can_add(ctx: Context) -> str | None:
    """Rows are added to lists and environments."""
    item = ctx.item
    return None if item and item.field.kind in ("list", "env") else tr("why.no_list")


def can_remove(ctx: Context) -> str | None:
    """What is set can be taken out."""
    item = ctx.item
    if item is None or item.part not in ("field", "entry"):
        return tr("why.nothing_set")
    if item.marker in ("generated", "platform"):
        return tr("why.generated")
    if item.locked:
        return tr("form.name_stays")
    return tr("why.nothing_set") if item.marker in ("default", "inherit") else None


def has_endpoint(ctx: Context) -> str | None:
    """The group must have a registered endpoint."""
    if reason := group(ctx):
        return reason
    if ctx.group and not ctx.group.endpoint:
        return tr("why.no_endpoint", name=ctx.group.name)
    return None


def has_log(ctx: Context) -> str | None:
    """A member must stand under the cursor, or the group must have one."""
    if not ctx.connected:
        return tr("why.disconnected")
    if ctx.member:
        if ctx.member.state == "pending" and ctx.member.generation <= 1 and not ctx.member.pid:
            return tr("why.not_started", name=ctx.member.id)
        return None
    if ctx.group is None:
        return tr("why.no_group")
    return None if ctx.group.members else tr("why.no_members", name=ctx.group.name)


def has_previous(ctx: Context) -> str | None:
    """There must be an earlier generation."""
    return None if ctx.log_generation > 1 else tr("why.first_generation")


def is_searching(ctx: Context) -> str | None:
    """A search must be on."""
    return None if ctx.searching else tr("why.no_search")


def host(ctx: Context) -> str | None:
    """A host must stand under the cursor."""
    return None if ctx.host else tr("why.no_host")


def key_unknown(ctx: Context) -> str | None:
    """Only a key that nobody has accepted yet can be accepted."""
    if ctx.host is None:
        return tr("why.no_host")
    if ctx.host.state == "key_changed":
        return tr("why.key_changed", name=ctx.host.name)
    return None if ctx.host.state == "key_unknown" else tr("why.key_known", name=ctx.host.name)


def any_member(ctx: Context) -> str | None:
    """The group must have a member."""
    if reason := group(ctx):
        return reason
    assert ctx.group is not None
    return None if ctx.group.members else tr("why.no_members", name=ctx.group.name)


def mode(ctx: Context) -> str | None:
    """A mode must stand under the cursor."""
    return None if ctx.mode else tr("why.no_mode")


def event_group(ctx: Context) -> str | None:
    """The event under the cursor must be a group's."""
    if ctx.event is None:
        return tr("why.no_event")
    return None if ctx.event.group else tr("why.no_event_group")


def event(ctx: Context) -> str | None:
    """An event must stand under the cursor."""
    return None if ctx.event else tr("why.no_event")
