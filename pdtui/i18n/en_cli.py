"""English of the command line."""

from __future__ import annotations

TEXT: dict[str, str] = {
    "cli.error": "error",
    "cli.examples": "Examples:",
    "cli.unwatched": (
        "note: no daemon runs, so nothing watches the groups now; `pdtui daemon` does."
    ),
    "cli.not_text": "an argument holds bytes that are not UTF-8, near: {shown}",
    "cli.not_text.do": "Write it in UTF-8; names, folders and addresses are kept as text.",
    "cli.no_terminal": "“{question}” is not asked: nobody answers here, stdin is no terminal.",
    "cli.no_terminal.remedy": "Give {flag} to go ahead.",
    "cli.no_screen": "the console needs a terminal, and this is none.",
    "cli.no_screen.remedy": "Use a command, such as `pdtui get`; `pdtui --help` lists them.",
    "cli.twice": "{kind} {name} stands in two documents; the first is at {first}.",
    "cli.twice.remedy": "Keep one of them.",
    "cli.masked": (
        "the value is masked, and nothing is saved at this place that it could stand for."
    ),
    "cli.masked.remedy": "Write the value itself; `pdtui export --with-secrets` does.",
    "cli.plan.create": "create",
    "cli.plan.update": "update",
    "cli.plan.unchanged": "unchanged",
    "cli.plan.refused": "refused",
    "cli.plan.delete": "delete",
    "cli.plan.restart": "restart",
    "cli.plan.later": "judged again once the documents that it refers to are saved",
    "cli.plan.count.create": "{count} to create",
    "cli.plan.count.update": "{count} to update",
    "cli.plan.count.unchanged": "{count} unchanged",
    "cli.plan.count.refused": "{count} refused or unreadable",
    "cli.plan.count.later": "{count} to judge again",
    "cli.plan.summary": "Plan: {words}",
    "cli.effect.forms": "forms a group: {counts}",
    "cli.effect.stays_off": "is saved switched off",
    "cli.effect.restart_applies": "Config changed: nothing moves until the group is restarted",
    "cli.effect.scales_up": "{role} scales up at once: {before} -> {after}",
    "cli.effect.scales_down": "{role} scales down at once: {before} -> {after}",
    "cli.effect.scale_waits": "{role} {count} is stored and waits for the restart",
    "cli.effect.stops": "stops every member at once",
    "cli.effect.resumes": "forms the group again",
    "cli.effect.groups_change": "groups that use it show Config changed: {groups}",
    "cli.effect.host_looked_at": "the host is looked at over SSH",
    "cli.effect.nothing_moves": "nothing that runs is moved",
    "cli.prune_needs": (
        "--prune needs --selector KEY=VALUE, which says what it may delete; and --selector "
        "is for --prune"
    ),
    "cli.prune_broken": (
        "nothing is pruned: a document that cannot be read may be one that is to stay."
    ),
    "cli.prune_broken.do": "Correct it and apply again.",
    "cli.stdin_taken": "the documents come on stdin, so nobody can answer there.",
    "cli.apply?": "Apply these {count} changes?",
    "cli.json_needs": (
        "--json shows no plan to answer to: add --yes, or --dry-run for the plan as JSON"
    ),
    "cli.saved": "{kind} {name} is saved",
    "cli.saved_as": "{kind} {name} is saved: {state}",
    "cli.host_not_up": "{name} is in the inventory and cannot be used yet: {note}",
    "cli.host_not_up.do": "Run `pdtui hosts test {name}`; it says what to do.",
    "cli.being_deleted": "{name} is being deleted",
    "cli.deleted": "{name} is deleted",
    "cli.absent": "{kind} {name} is not there",
    "cli.waits": (
        "{name} runs an earlier configuration: {counts} is stored and waits for its restart."
    ),
    "cli.waits.do": "Run `pdtui restart {name}`.",
    "cli.late": "{name} did not {what} within {seconds} s; it is {status}. {said}",
    "cli.late.serve": "serve",
    "cli.late.run": "run",
    "cli.late.stop": "stop",
    "cli.late.vanish": "vanish",
    "cli.late.do": "It goes on: look at it with `pdtui get {name}`, or raise --timeout.",
    "cli.crash_loop": "{name} does not come up: {why}",
    "cli.crash_loop.do": "Read `pdtui logs {instance}`, correct the deployment, and restart it.",
    "cli.delete?": "Delete {names}? It stops {count} instances for good.",
    "cli.delete_what": "name a deployment or give --file, not both and not neither",
    "cli.wait.done": "{name}: {state}",
    "cli.export_what": "name what to export, or give --all",
    "cli.export.into": "{path}: {kind} {name} is written",
    "cli.export.same": "{path}: {kind} {name} is as it was",
    "cli.export.unknown": "nothing is saved under the name {name!r}.",
    "cli.export.unknown.do": (
        "`pdtui get`, `pdtui hosts list` and `pdtui caches list` show what there is."
    ),
    "cli.export.masked": "note: secrets are masked; --with-secrets writes them out.",
    "cli.meant": "Did you mean {near!r}?",
    "cli.note": "note",
    "cli.convert.renamed": "{name!r} becomes {new!r} and stays the served model name",
    "cli.convert.hub_id": "{model} is a hub id: the hosts need a copy of it, or a path to one here",
    "cli.convert.gpu_ids": "{ids} do not come out as one host's accelerators per replica",
    "cli.convert.labels": "hosts need these labels here too: {labels}",
    "cli.convert.vendor": "the mode says the vendor; choose hosts that have {vendor}",
    "cli.convert.readiness": (
        "{value!r} has no place here: a group runs when each role has a ready member"
    ),
    "cli.convert.role": "there is no role {name!r} here",
    "cli.convert.router": "a router has no such field here",
    "cli.convert.no_place": "has no place here (its value is {value})",
    "cli.convert.placeholder": "this placeholder is not known here",
    "cli.group.ratio": "Ratio {ratio}",
    "cli.group.currently": "(currently {ratio})",
    "cli.group.restart": "restart: {phase} {done}/{total}",
    "cli.group.changed": "Config changed:",
    "cli.group.endpoint": "endpoint {url}  model {model}",
    "cli.check.nothing": "nothing found",
    "cli.check.one": "1 document: {said}",
    "cli.check.many": "{count} documents: {said}",
    "cli.check.line": "line {line}",
    "cli.check.refused": "refused",
    "cli.check.warning": "warning",
    "cli.check.unverified": "unverified",
    "cli.adopt?": "Take over everything of {owner}? A backend that still lives loses it.",
    "cli.adopted": "adopted {groups}: {count} instances",
    "cli.adopt.none": "no group",
    "cli.removed": "{name} is removed",
    "cli.rolled_back": "{name} is saved as it was in version {version}: {status}",
    "cli.progress.stopping": "stopping, {count} left",
    "cli.progress.stopped": "stopped",
    "cli.none.groups": "no groups yet: `pdtui apply -f FILE` saves one, `pdtui demo` shows one",
    "cli.none.hosts": (
        "no hosts yet: `pdtui hosts add NAME ADDRESS` or `pdtui hosts import` adds some"
    ),
}
