"""English of diagnosis and advice."""

from __future__ import annotations

TEXT: dict[str, str] = {
    "cmd.diagnose": "why",
    "cmd.diagnose.help": "Say why it does not serve: the first cause in the logs, and what to do",
    "diagnosis.title": "why",
    "diagnosis.causes": "{count} first cause(s) in the logs of {name}",
    "diagnosis.clear": "no log of {name} tells of an error",
    "diagnosis.nothing": "its log tells of no error",
    "diagnosis.peer": "follows from {peer}",
    "diagnosis.unknown": "no rule knows this line; it is the first error the log tells of",
    "diagnosis.line": "line {line}",
    "diagnosis.times": "{count} times",
    "diagnosis.attempt": "attempt {number}",
    "diagnosis.cause": "cause",
    "diagnosis.where": "where",
    "diagnosis.log": "log",
    "diagnosis.remedy": "do",
    "diagnosis.also": "also",
    "diagnosis.rule": "rule",
    "diagnosis.before": "before",
    "diagnosis.explains": "explains {rule} of {name}",
    "diagnosis.cut": "only the log's beginning and end were read",
}
