"""The command line of `vllm serve`, read as vLLM 0.32 reads it.

`vllm-flags.txt` lists every flag the real program accepts; most have no effect here, but all are
checked for existence, number of values and choices.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NoReturn

from backend.sandbox.engine.failures import unrecognized, usage

_FILE = Path(__file__).with_name("vllm-flags.txt")
_NUMBERS = {
    "--port", "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size",
    "--block-size", "--max-num-seqs", "--max-num-batched-tokens", "--api-server-count", "--seed",
    "--shutdown-timeout", "--nnodes", "--node-rank", "--data-parallel-rank",
}  # fmt: skip
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise usage(message)


def _length(text: str) -> int | None:
    """`32K` -> 32768, `25.6k` -> 25600, `auto` or -1 -> None."""
    text = text.strip()
    if text.lower() == "auto" or text == "-1":
        return None
    factor = {**_DECIMAL, **_BINARY}.get(text[-1:], 1)
    number = text[:-1] if factor != 1 else text
    try:
        return int(number) * factor if text[-1:] in _BINARY else int(float(number) * factor)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no length in tokens") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(
            f"Value {text} cannot be converted to <function loads>. ({e})"
        ) from None


def _parser() -> _Parser:
    parser = _Parser(prog="vllm serve", add_help=False, allow_abbrev=False)
    parser.add_argument("model_tag", nargs="?")
    kinds = {"--max-model-len": _length, "--kv-transfer-config": _json}
    for line in _FILE.read_text().splitlines():
        if line.startswith("#"):
            continue
        spellings, kind = line.split("\t")
        names = spellings.split()
        options: dict[str, Any] = {"default": None, "dest": names[0][2:].replace("-", "_")}
        if kind == "flag":
            options |= {"action": "store_const", "const": True}
        elif kind == "bool":
            negative = [n for n in names if n.startswith("--no-")]
            parser.add_argument(*negative, action="store_const", const=False, **options)
            names = [n for n in names if n not in negative]
            options |= {"action": "store_const", "const": True}
        else:
            options["type"] = int if names[0] in _NUMBERS else kinds.get(names[0], str)
            word, _, choices = kind.partition(" ")
            if word == "choice":
                options["choices"] = choices.split(",")
            elif word != "1":
                options["nargs"] = word
        parser.add_argument(*names, **options)
    return parser


def _known(name: str) -> bool:
    return any(name in line.split("\t")[0].split() for line in _FILE.read_text().splitlines())


def _normal(argv: list[str]) -> list[str]:
    """Underscores in flags become dashes; `--a.b.c V` is gathered into one JSON value of `--a`."""
    out: list[str] = []
    gathered: dict[str, dict[str, Any]] = {}
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            out.append(word)
            continue
        base, dot, path = name.partition(".")
        flag = base.replace("_", "-")
        if not dot or not _known(flag):
            out.append(flag + dot + path + equals + value)
            continue
        text = value if equals else next(words, "")
        node = gathered.setdefault(flag, {})
        *parents, leaf = path.split(".")
        for key in parents:
            node = node.setdefault(key, {})
        try:
            node[leaf] = json.loads(text)
        except ValueError:
            node[leaf] = text
    for flag, tree in gathered.items():
        out += [flag, json.dumps(tree)]
    return out


def parse(argv: list[str]) -> dict[str, Any]:
    """The values of `vllm serve`'s arguments, by name; None where not given.

    Raises StartFailure as the real parser exits.
    """
    namespace, rest = _parser().parse_known_args(_normal(argv))
    if rest:
        raise unrecognized(rest)
    return vars(namespace)
