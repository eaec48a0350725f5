"""`vllm` of an embedded host: `serve MODEL [flags]`, `--version`; and with `sglang` as the first
word its `python3 -m sglang.launch_server`.

The engine core is forked before uvicorn and asyncio are imported, which keeps it small.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

if not __package__:  # started by its path, from any directory and without an installed package
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from backend.sandbox.engine import core, failures, flags, log, sglang_config, switches
from backend.sandbox.engine.config import VERSION, EngineConfig, from_environment
from backend.sandbox.engine.log import Log

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BANNER = """
       █     █     █▄   ▄█
 ▄▄ ▄█ █     █     █ ▀▄▀ █  version {}
  █▄█▀ █     █     █     █  model   {}
   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀
"""


def _bind(config: EngineConfig) -> socket.socket:
    """Take the HTTP port, as vLLM does before anything slow. Raises StartFailure."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((config.host, config.port))
    except OSError as e:
        raise failures.raised(
            f"    sock.bind(addr)\nOSError: [Errno {e.errno}] {e.strerror}"
        ) from e
    return sock


def _show_start(config: EngineConfig) -> None:
    out = Log("APIServer")
    if config.flavor == "sglang":
        out.info("", f"server_args=ServerArgs({dict(config.given)})")
        return
    out.info("api_utils.py:347", _BANNER.format(VERSION, config.model.name))
    out.info("api_utils.py:286", f"non-default args: {dict(config.given)}")
    out.info("model.py:733", f"Resolved architecture: {config.model.architecture}")
    out.info("model.py:2152", f"Using max model len {config.max_model_len}")


def _die(chosen: switches.Switches) -> None:
    if chosen.die >= 0 and not chosen.die_after:
        text = f"{chosen.die_message}\n" if chosen.die_message else ""
        raise failures.StartFailure(text, chosen.die)


def serve(read: Callable[[], EngineConfig]) -> int:
    """Run the engine of a config to its end; returns the exit code."""
    try:
        config = read()
        chosen = switches.read(os.environ, config.port)
        config = replace(config, without=chosen.without)
        _die(chosen)
        http = _bind(config)
        _show_start(config)
        child = core.fork(config, http)
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # until the loop listens to them
        import asyncio

        from backend.sandbox.engine.process import Process

        async def run() -> int:
            return await Process(config, chosen, http, child).run()

        return asyncio.run(run())
    except failures.StartFailure as failure:
        sys.stderr.write(failure.text)
        return failure.code
    except switches.SwitchError as e:
        sys.stderr.write(f"simulated engine: {e}\n")
        return 2


def main() -> int:
    """The `vllm` command."""
    argv = sys.argv[1:]
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if argv[:1] == ["sglang"]:
        log.use("sglang")
        return serve(lambda: sglang_config.build(argv[1:]))
    if argv[:1] in (["--version"], ["-v"]):
        sys.stdout.write(f"{VERSION}\n")
        return 0
    if argv[:1] != ["serve"]:
        sys.stderr.write("usage: vllm serve [model_tag] [options]\n")
        return 2
    Path("/proc/self/comm").write_text("vllm")  # as a console script is named
    return serve(lambda: from_environment(flags.parse(argv[1:])))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # nothing is left to clean up, and an interpreter's end takes a while
