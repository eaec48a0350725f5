"""What was seen of an instance, turned into its state."""

from __future__ import annotations

from dataclasses import dataclass

from backend.domain.group import Instance
from backend.domain.instance import ProcessStatus

FAILED_PROBES = 3
"""Missed health answers in a row before a ready instance counts as unhealthy."""
CRASH_LOOP = 3
"""Starts that ended without ever having served before restarting stops."""
BACKOFF_S = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
"""Seconds before the next start, by failures in a row; the last one holds from there on."""


@dataclass(frozen=True)
class Seen:
    """One moment's knowledge of an instance.

    `host_up` is None while its host was not asked yet. `process` is what the host says of the
    instance directory, None when it was not asked since the last change. `healthy_streak` and
    `failed_streak` count health answers in a row of generation `generation`.
    """

    host_up: bool | None = None
    process: ProcessStatus | None = None
    generation: int = 0
    healthy_streak: int = 0
    failed_streak: int = 0
    problem: str = ""


def backoff(failures: int) -> float:
    """Seconds to wait before the next start after so many failures in a row."""
    return BACKOFF_S[min(max(failures, 0), len(BACKOFF_S) - 1)]


def observe(instance: Instance, seen: Seen, now: float) -> Instance:
    """The instance with its state as seen; the same object when nothing changed.

    Instances on their way out keep their state: only the act of stopping confirms that. So do
    those that wait for a start: there is no process that a silent host could hide.
    """
    if instance.leaving:
        return _leaving(instance, seen)
    if instance.state == "crash_loop":
        return instance
    if seen.host_up is False and instance.state not in ("pending", "exited"):
        return _to(instance, "unreachable", now, "its host does not answer")
    process = seen.process
    if process is None or process.generation != instance.generation:
        return instance
    if process.state == "running":
        return _living(instance, seen, process, now)
    if instance.state in ("starting", "ready", "unhealthy", "unreachable"):
        return _ended(instance, process, now)
    return instance


def _leaving(instance: Instance, seen: Seen) -> Instance:
    """Whether a draining member's process still lives decides how long it is waited for."""
    process = seen.process
    if process is None or process.generation != instance.generation or seen.host_up is False:
        return instance
    if instance.process is None or process == instance.process:
        return instance
    return instance.model_copy(update={"process": process})


def _living(instance: Instance, seen: Seen, process: ProcessStatus, now: float) -> Instance:
    known = instance.model_copy(update={"process": process})
    fresh = seen.generation == instance.generation
    if fresh and seen.healthy_streak > 0:
        served = known.model_copy(update={"served": instance.generation, "failures": 0})
        # a ready router's note says what its peers or its first request still lack
        note = instance.note if instance.state == "ready" else ""
        return _to(served, "ready", now, note, instance)
    served_now = instance.served == instance.generation
    if not served_now:
        return _to(known, "starting", now, instance.note, instance)
    if fresh and seen.failed_streak >= FAILED_PROBES:
        note = f"health path fails: {seen.problem}" if seen.problem else "health path fails"
        return _to(known, "unhealthy", now, note, instance)
    if instance.state in ("ready", "unhealthy"):
        return known if known != instance else instance
    return _to(known, "starting", now, instance.note, instance)


def _ended(instance: Instance, process: ProcessStatus, now: float) -> Instance:
    served_now = instance.served == instance.generation
    failures = 0 if served_now else instance.failures + 1
    note = _why(process)
    looping = instance.served == 0 and failures >= CRASH_LOOP
    update = {
        "process": process,
        "failures": failures,
        "next_start": None if looping else now + backoff(failures),
    }
    ended = instance.model_copy(update=update)
    return _to(ended, "crash_loop" if looping else "exited", now, note, instance)


def _why(process: ProcessStatus) -> str:
    if process.detail:
        return f"ended: {process.detail}"
    if process.state == "exited" and process.exit_code is not None:
        code = process.exit_code
        return f"ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
    if process.state == "absent":
        return "its instance directory is gone from the host; what is left of it is ended"
    return "ended, and nothing on the host says why"


def _to(
    instance: Instance, state: str, now: float, note: str, before: Instance | None = None
) -> Instance:
    old = before or instance
    update: dict[str, object] = {"note": note}
    if old.state != state:
        update |= {"state": state, "since": now}
    changed = instance.model_copy(update=update)
    return old if changed == old else changed
