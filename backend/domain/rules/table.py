"""The table of rules, and the one way they are asked: `judge`.

Each rule is a small pure function with an id of its own. What a rule may say, where it comes from
and whether a document may let it through is written here; docs/rules.md is this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from backend.domain.deployment import Deployment
from backend.domain.errors import Problem, Severity
from backend.domain.rules import (
    environment,
    handshake,
    hosts,
    limits,
    models,
    pairing,
    routing,
    structure,
    transfer,
)
from backend.domain.rules.known import Known
from backend.domain.rules.subject import Subject
from backend.domain.rules.words import allowed, finding

Check = Callable[[Subject], Iterator[Problem]]
Scope = Literal["document", "pair", "host"]
DOCUMENT, REFERENCE, MEASURED = "user's document", "decision tables", "tried on real engines"


@dataclass(frozen=True)
class Rule:
    """One rule. `checks` find it; `overridable` ones may be named in `disaggregation.allow`.

    `scope`: `document` rules are always asked, `pair` ones of disaggregated deployments, `host`
    ones where there are hosts.
    """

    id: str
    scope: Scope
    source: str
    summary: str
    checks: tuple[Check, ...]
    verdicts: tuple[Severity, ...] = ("refused",)
    overridable: bool = False

    def applies(self, subject: Subject) -> bool:
        """Whether the rule has anything to say of this document."""
        if self.scope == "pair":
            return subject.spec.disaggregation is not None
        return self.scope == "document" or bool(subject.known.hosts)


def allow(s: Subject) -> Iterator[Problem]:
    """`disaggregation.allow` names rules that can be let through, and nothing else."""
    pd = s.spec.disaggregation
    for index, name in enumerate(pd.allow if pd else ()):
        rule = BY_ID.get(name)
        if rule is None or not rule.overridable:
            known = [r.id for r in RULES if r.overridable]
            yield finding("structure.allow", "never" if rule else "unknown",
                          f"spec.disaggregation.allow[{index}]", name=name,
                          known=known)  # fmt: skip


_REFUSED_OR_UNKNOWN: tuple[Severity, ...] = ("refused", "unverified")

RULES: tuple[Rule, ...] = (
    Rule("structure.roles", "document", DOCUMENT,
         "Roles belong to disaggregation.", (structure.shape,)),
    Rule("structure.replicas", "document", DOCUMENT,
         "A disaggregated deployment is counted by role.", (structure.shape,)),
    Rule("structure.schedule", "document", DOCUMENT,
         "Scheduled scaling and disaggregation exclude each other.", (structure.shape,)),
    Rule("structure.run_command", "document", DOCUMENT,
         "A custom engine or router has a command.", (structure.command_given,)),
    Rule("structure.placement", "document", DOCUMENT,
         "Pins of a role are equally wide and give each accelerator once.",
         (structure.pins_sound,)),
    Rule("structure.lora", "pair", REFERENCE,
         "Adapters and disaggregation exclude each other.", (limits.lora,)),
    Rule("structure.reserved_flag", "document", REFERENCE,
         "Address, port, served name and members' keys are the platform's.",
         (limits.reserved_flags,)),
    Rule("structure.image_version", "document", REFERENCE,
         "An explicit image and an engine version exclude each other.", (limits.image_version,)),
    Rule("structure.accelerators", "document", MEASURED,
         "A member's ranks fit on its accelerators.", (limits.accelerators,)),
    Rule("structure.allow", "pair", REFERENCE,
         "Only overridable rules can be let through.", (allow,)),
    Rule("mode.unknown", "pair", DOCUMENT,
         "The mode is in the catalogue.", (structure.mode_known,)),
    Rule("mode.engine", "pair", DOCUMENT,
         "The mode can configure each role's engine.", (structure.engine_fits_mode,)),
    Rule("mode.kv_load_failure_policy", "pair", REFERENCE,
         "A failure policy is set only where the connector reads it.", (limits.failure_policy,)),
    Rule("mode.version_range", "pair", DOCUMENT,
         "A built-in version is one the recipe is known to work with.", (limits.version_range,),
         ("warning",)),
    Rule("mode.shadowed", "pair", REFERENCE,
         "What the mode sets is not set again by a role.", (limits.shadowed,), ("warning",)),
    Rule("pairing.max_model_len", "pair", DOCUMENT,
         "Both sides serve the same context length.", (pairing.max_model_len,),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.tensor_parallel", "pair", DOCUMENT,
         "Tensor parallel sizes stand in the direction the connector takes.",
         (pairing.tensor_parallel, pairing.uneven_tensor_parallel),
         ("refused", "warning", "unverified"), overridable=True),
    Rule("pairing.tp_divisibility", "pair", MEASURED,
         "Heads can be dealt evenly to the ranks of each side and between them.",
         (pairing.tp_divisibility,), ("refused", "warning"), overridable=True),
    Rule("pairing.data_parallel", "pair", REFERENCE,
         "Data parallel sizes suit the model and the router.", (pairing.data_parallel,),
         _REFUSED_OR_UNKNOWN, overridable=True),
    Rule("pairing.dtype", "pair", DOCUMENT,
         "Both sides compute in the same type.", (pairing.dtype,), _REFUSED_OR_UNKNOWN),
    Rule("pairing.kv_cache_dtype", "pair", DOCUMENT,
         "Both sides keep KV in the same type.", (pairing.kv_cache_dtype,), _REFUSED_OR_UNKNOWN),
    Rule("pairing.block_size", "pair", DOCUMENT,
         "Both sides cut KV into blocks of the same size.", (pairing.block_size,),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.kv_cache_layout", "pair", DOCUMENT,
         "Both sides lay KV out alike.", (pairing.kv_cache_layout, environment.kv_cache_layout),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.hybrid_kv_cache_manager", "pair", REFERENCE,
         "The hybrid KV cache manager runs on both sides or on neither.",
         (environment.hybrid_kv_cache_manager,), _REFUSED_OR_UNKNOWN),
    Rule("pairing.mla", "pair", DOCUMENT,
         "A latent model's KV is latent on both sides or on neither.", (environment.mla,),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.ssm_conv_state_layout", "pair", DOCUMENT,
         "A recurrent model's state travels in layout DS.",
         (environment.ssm_conv_state_layout,), ("refused", "warning", "unverified")),
    Rule("pairing.attention_backend", "pair", DOCUMENT,
         "Explicit attention backends agree.", (handshake.attention_backend,),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.engine_version", "pair", MEASURED,
         "Both sides run the same engine version.", (handshake.engine_version,),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.model_path", "pair", MEASURED,
         "Both sides name the model by the same text and revision.", (handshake.model_path,),
         _REFUSED_OR_UNKNOWN),
    Rule("pairing.speculative", "pair", MEASURED,
         "Both sides speculate with the same draft model, or with none.",
         (handshake.speculative,), ("refused", "warning", "unverified")),
    Rule("pairing.connector", "pair", REFERENCE,
         "Connectors can be read, face the right way and are of one kind.",
         (transfer.connector,), _REFUSED_OR_UNKNOWN),
    Rule("pairing.model_digest", "pair", MEASURED,
         "The hosts have the same model at the same path.", (models.model_digest,),
         overridable=True),
    Rule("router.owned_flag", "pair", DOCUMENT,
         "Peers and the router's ports are the platform's.", (routing.owned_flags,)),
    Rule("router.tunable", "pair", MEASURED,
         "Adjusted router flags are within their bounds.", (routing.tunables,)),
    Rule("router.members", "pair", MEASURED,
         "A routing policy has the members it needs.", (routing.tunables,)),
    Rule("router.policy", "pair", MEASURED,
         "Policies by role are set only where they have an effect.", (routing.policies,),
         ("warning",)),
    Rule("router.member_key", "pair", MEASURED,
         "A key that members ask for is the one the router sends.", (routing.member_key,)),
    Rule("cache.mode", "document", DOCUMENT,
         "The mode composes the wanted extended cache.", (limits.cache,)),
    Rule("cache.role", "pair", DOCUMENT,
         "The role may use the wanted extended cache.", (limits.cache,)),
    Rule("cache.provider", "pair", DOCUMENT,
         "The mode takes the service's provider.", (limits.cache,)),
    Rule("cache.service", "pair", DOCUMENT,
         "The named cache service exists.", (limits.cache,), _REFUSED_OR_UNKNOWN),
    Rule("cache.shape", "document", REFERENCE,
         "A service is named exactly where the kind is service.", (limits.cache,)),
    Rule("cache.two_services", "pair", REFERENCE,
         "Both roles attach the same service.", (limits.one_service,)),
    Rule("host.unknown", "host", DOCUMENT,
         "Named hosts are in the inventory.", (structure.hosts_known,)),
    Rule("placement.too_wide", "host", REFERENCE,
         "A member fits on one host.", (structure.fits_a_host,)),
    Rule("host.kv_interface", "host", DOCUMENT,
         "Each host has one interface for KV traffic, or was told which.", (hosts.interfaces,)),
    Rule("host.port_budget", "host", DOCUMENT,
         "The wanted members' ports fit into the hosts' ranges.", (hosts.port_budget,),
         ("refused", "warning")),
    Rule("host.engine_ports", "host", DOCUMENT,
         "Service ports keep clear of those transports choose.", (hosts.engine_ports,),
         ("warning",)),
    Rule("host.ephemeral_ports", "host", DOCUMENT,
         "Service ports keep clear of those of outgoing connections.", (hosts.ephemeral_ports,),
         ("warning",)),
    Rule("host.npu_ports", "host", MEASURED,
         "Service ports keep clear of the transport's window for the host's NPUs.",
         (hosts.npu_ports,), ("warning",)),
    Rule("host.memory_utilization", "host", REFERENCE,
         "Members on one card claim no more than its memory.", (hosts.memory_utilization,)),
    Rule("host.model_missing", "host", MEASURED,
         "The hosts have the model.", (models.model_missing,), ("refused", "warning")),
    Rule("host.image", "host", REFERENCE,
         "Container hosts have an image to run.", (hosts.images,)),
)  # fmt: skip
BY_ID = {rule.id: rule for rule in RULES}

NO_HOSTS = "host.*: no host in the inventory"
"""What is said to be skipped where there is no host to look at."""
ORDER: dict[Severity, int] = {"refused": 0, "warning": 1, "unverified": 2, "fine": 3}


def judge(document: Deployment, known: Known, *, every: bool = False) -> tuple[Problem, ...]:
    """Every finding about a document, worst first; with `every` also the rules that are fine.

    A refusal of an overridable rule that the document allows is `unverified`.
    """
    subject = Subject(document, known)
    pd = document.spec.disaggregation
    let_through = {name for name in (pd.allow if pd else ()) if _can_be_allowed(name)}
    asked = [rule for rule in RULES if _asked(rule, subject)]
    ids = {rule.id for rule in asked}
    found: dict[str, Problem] = {}
    for check in dict.fromkeys(c for rule in asked for c in rule.checks):
        for problem in check(subject):
            if problem.rule not in BY_ID:
                raise KeyError(f"{problem.rule} is not in the table of rules")
            if problem.rule in ids:
                found.setdefault(_once(problem), _let(problem, let_through))
    fine = _fine(asked, found.values()) if every else []
    return tuple(sorted([*found.values(), *fine], key=lambda p: ORDER[p.verdict]))


def _once(problem: Problem) -> str:
    """Alike for a finding that both roles give about one field they inherit."""
    rest = {k: v for k, v in problem.values.items() if k != "role"}
    return repr((problem.rule, problem.case, problem.path, sorted(rest.items())))


def _asked(rule: Rule, subject: Subject) -> bool:
    if rule.id == "host.unknown":  # also where the inventory is empty: it then has none of them
        return subject.known.inventory
    return rule.applies(subject)


def _can_be_allowed(name: str) -> bool:
    rule = BY_ID.get(name)
    return rule is not None and rule.overridable


def _let(problem: Problem, let_through: set[str]) -> Problem:
    refused = problem.verdict == "refused" and problem.rule in let_through
    return allowed(problem) if refused else problem


def _fine(asked: Iterable[Rule], found: Iterable[Problem]) -> list[Problem]:
    said = {p.rule for p in found}
    return [
        Problem(rule=r.id, message=r.summary, verdict="fine") for r in asked if r.id not in said
    ]


__all__ = ["BY_ID", "NO_HOSTS", "RULES", "Known", "Rule", "judge"]
