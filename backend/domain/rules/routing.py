"""Rules on the router's rows: what it would end at its start for, or silently ignore.

Source: the routers' own behaviour, tried on real ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from backend.domain.api_keys import MEMBER_KEY
from backend.domain.deployment import Deployment
from backend.domain.engine_args import flatten, present
from backend.domain.errors import Problem, Refused
from backend.domain.inherit import effective
from backend.domain.mode import Catalogue
from backend.domain.render import refuse_owned
from backend.domain.rows import prefilled_rows, strip_unmodified, tunable_problems
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import finding

PATH = "spec.roles.router.parameters"
PER_ROLE_POLICIES = ("--prefill-policy", "--decode-policy")
IGW = "--enable-igw"
SENT_KEY = {"vllm-router": "OPENAI_API_KEY"}
"""Where each router has the one key from that it sends to every member; a client's own is dropped,
and so is a key given with a member at its registration."""


def _managed(s: Subject) -> tuple[str, ...] | None:
    """The router's own arguments where the platform starts it; None where it does not."""
    if s.mode is None or not s.mode.router.command:
        return None
    router = effective(s.spec, "router")
    return None if router.run_command is not None else flatten(router.parameters)


def owned_flags(s: Subject) -> Iterator[Problem]:
    """Peers and the router's own ports are the platform's, in every spelling."""
    args = _managed(s)
    if args is None or s.mode is None:
        return
    recipe = s.mode.router
    try:
        refuse_owned(recipe, args)
    except Refused as error:
        flags = error.problem.values["flags"]
        case = "peers" if any(f in recipe.peer_flags for f in flags) else "ports"
        yield finding("router.owned_flag", case, PATH, flags=flags, program=recipe.program,
                      adjustable=[t.flag for t in recipe.tunables])  # fmt: skip


def tunables(s: Subject) -> Iterator[Problem]:
    """Each adjusted flag is within its options, bounds and the members it needs."""
    if _managed(s) is None or s.mode is None:
        return
    for problem in tunable_problems(s.mode, s.spec):
        values = dict(problem.values)
        yield finding(problem.rule, problem.case or "misfit", problem.path, **values)


def policies(s: Subject) -> Iterator[Problem]:
    """Policies by role have no effect on a router that keeps all members in one registry."""
    args = _managed(s)
    if args is None or s.mode is None or IGW not in s.mode.router.args:
        return
    for flag in PER_ROLE_POLICIES:
        if present(args, flag):
            yield finding("router.policy", "", PATH, "warning", flag=flag, igw=IGW,
                          instead="--policy")  # fmt: skip


def member_key(s: Subject) -> Iterator[Problem]:
    """A member's key is the one that the router sends to both sides. Keys are never repeated."""
    if s.mode is None or _managed(s) is None or s.mode.router.program not in SENT_KEY:
        return
    sends, router = SENT_KEY[s.mode.router.program], effective(s.spec, "router")
    asked = {side.name: key for side in s.sides if (key := side.role.env.get(MEMBER_KEY))}
    rule, sent = "router.member_key", router.env.get(sends)
    if len(set(asked.values())) > 1:
        yield finding(rule, "differ", s.env_path(MEMBER_KEY), variable=MEMBER_KEY,
                      roles=list(asked))  # fmt: skip
        return
    if asked and sent not in asked.values():
        own = "env" in router.inherited
        path = f"spec.env.{sends}" if own else f"spec.roles.router.env.{sends}"
        yield finding(rule, "other" if sent else "unset", path, variable=MEMBER_KEY,
                      roles=list(asked), sends=sends)  # fmt: skip


def settled(document: Deployment, catalogue: Catalogue) -> Deployment:
    """The document as it is saved: router rows left as the form prefilled them are taken out, so
    that they go on being generated."""
    spec = document.spec
    mode = catalogue.modes.get(spec.disaggregation.mode) if spec.disaggregation else None
    if mode is None or spec.roles is None or spec.roles.router.run_command is not None:
        return document
    router = spec.roles.router
    parameters, env = strip_unmodified(
        prefilled_rows(mode, "router"), router.parameters, router.env
    )
    if (parameters, env) == (router.parameters, router.env):
        return document
    kept = router.model_copy(update={"parameters": parameters, "env": env})
    roles = spec.roles.model_copy(update={"router": kept})
    return document.model_copy(update={"spec": spec.model_copy(update={"roles": roles})})
