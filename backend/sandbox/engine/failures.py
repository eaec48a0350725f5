"""Ways in which a start fails, with the words and exit codes of vLLM 0.32."""

from __future__ import annotations


class StartFailure(Exception):
    """The engine does not start. `text` goes to stderr as it is; `code` is the exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.text, self.code = text, code


def usage(problem: str) -> StartFailure:
    """What the command line parser of `vllm serve` says before it exits with 2."""
    return StartFailure(
        f"usage: vllm serve [model_tag] [options]\nvllm serve: error: {problem}\n", 2
    )


def unrecognized(words: list[str]) -> StartFailure:
    """Unknown flags are found by the outer parser, which prints its own usage."""
    return StartFailure(
        "usage: vllm [-h] [-v]\n"
        "            {chat,complete,serve,launch,bench,collect-env,download-kernels,preload,"
        "run-batch,snapshot}\n"
        "            ...\n"
        f"vllm: error: unrecognized arguments: {' '.join(words)}\n",
        2,
    )


def invalid(model: str, message: str) -> StartFailure:
    """A pydantic validation error of one of vLLM's config classes."""
    return StartFailure(
        "Traceback (most recent call last):\n"
        '  File "vllm/entrypoints/cli/main.py", line 120, in main\n'
        "    args.dispatch_function(args)\n"
        '  File "vllm/engine/arg_utils.py", line 2240, in create_engine_config\n'
        f"pydantic_core._pydantic_core.ValidationError: 1 validation error for {model}\n"
        f"  Value error, {message} [type=value_error, input_value=ArgsKwargs((), {{...}}), "
        "input_type=ArgsKwargs]\n"
        "    For further information visit https://errors.pydantic.dev/2.14/v/value_error\n"
    )


def raised(error: str) -> StartFailure:
    """An exception that ended the API server's start."""
    return StartFailure(
        "Traceback (most recent call last):\n"
        '  File "vllm/entrypoints/cli/serve.py", line 156, in cmd\n'
        "    uvloop.run(run_server(args))\n"
        '  File "vllm/entrypoints/launchers/api_server/entry.py", line 176, in run_server\n'
        f"{error}\n"
    )


CORE_FAILED = raised(
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)
"""The last words of every start whose engine core failed: never the cause itself."""


def core_timeout(seconds: float) -> StartFailure:
    """The engine core never reported ready."""
    return raised(
        "TimeoutError: Timed out waiting for engine core processes to start. This is often caused "
        f"by slow weight loading for large models. Waited {seconds:g}s (configured by "
        "VLLM_ENGINE_READY_TIMEOUT_S). To increase the timeout, set the environment variable: "
        "VLLM_ENGINE_READY_TIMEOUT_S=<seconds>"
    )
