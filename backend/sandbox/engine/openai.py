"""OpenAI's requests and responses as vLLM shapes them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from backend.sandbox.engine import kv
from backend.sandbox.engine.config import EngineConfig
from backend.sandbox.engine.serving import Request, request_id


class HttpError(Exception):
    """An answer other than 200, in vLLM's error shape."""

    def __init__(self, status: int, message: str, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": status}}


INTERNAL = HttpError(500, "Internal server error", "InternalServerError")


@dataclass
class Call:
    """One parsed inference request."""

    chat: bool
    shown_id: str
    model: str
    stream: bool
    usage_in_stream: bool
    request: Request
    created: int


def _bad(message: str) -> HttpError:
    return HttpError(400, message, "BadRequestError")


def prompt_tokens(body: dict[str, Any], chat: bool) -> list[int]:
    """The prompt's tokens. Raises HttpError."""
    if chat:
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
            raise _bad("messages: Input should be a valid list of messages")
        parts = [f"<|im_start|>{m.get('role')}\n{_text(m.get('content'))}<|im_end|>\n"
                 for m in messages]  # fmt: skip
        return kv.tokenize("".join(parts) + "<|im_start|>assistant\n")
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return kv.tokenize(prompt)
    if isinstance(prompt, list) and all(type(t) is int and t >= 0 for t in prompt):
        return prompt
    raise _bad("prompt: one string or one list of token ids is supported")


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return "" if content is None else str(content)


def check_model(config: EngineConfig, model: Any) -> str:
    """The served name asked for. Raises HttpError 404."""
    if model is None or model == "":
        return config.names[0]
    if model not in config.names:
        raise HttpError(404, f"The model `{model}` does not exist.", "NotFoundError")
    return str(model)


def _whole(body: dict[str, Any], key: str, default: int | None) -> int | None:
    value = body.get(key)
    if value is None:
        return default
    if type(value) is not int or value < 0:
        raise _bad(f"{key} must be at least 0, got {value!r}.")
    return value


def parse(config: EngineConfig, body: Any, chat: bool, given_id: str | None) -> Call:
    """Read a request as vLLM does. Raises HttpError."""
    if not isinstance(body, dict):
        raise _bad("Input should be a valid dictionary")
    check_model(config, body.get("model"))
    tokens = prompt_tokens(body, chat)
    if not tokens:
        raise _bad("The prompt must contain at least one token.")
    room = config.max_model_len - len(tokens)
    asked = _whole(body, "max_completion_tokens", _whole(body, "max_tokens", None))
    if room < 1 or (asked is not None and asked > room):
        raise _bad(_too_long(config.max_model_len, len(tokens), asked))
    most = asked if asked is not None else (room if chat else min(16, room))
    if most < 1:
        raise _bad(f"max_tokens must be at least 1, got {most}.")
    shown, internal = request_id("chatcmpl" if chat else "cmpl", given_id)
    params = _transfer(config, body)
    if config.flavor == "sglang" and params.get("do_remote_decode"):
        most = 1  # an SGLang prefill ends by itself after the first token
    request = Request(
        internal,
        tokens,
        most,
        min(_whole(body, "min_tokens", 0) or 0, most),
        bool(body.get("ignore_eos")),
        params,
    )
    options = body.get("stream_options") or {}
    return Call(
        chat, shown, config.names[0], bool(body.get("stream")),
        bool(options.get("include_usage")), request, int(time.time()),
    )  # fmt: skip


def _transfer(config: EngineConfig, body: dict[str, Any]) -> dict[str, Any]:
    """What the request says of its other side: vLLM is told, SGLang finds its room in the body."""
    if config.flavor == "vllm":
        params = body.get("kv_transfer_params")
        return params if isinstance(params, dict) else {}
    if config.kv is None:
        return {}
    room = {k: body.get(k) for k in ("bootstrap_host", "bootstrap_port", "bootstrap_room")}
    if room["bootstrap_room"] is None:
        raise _bad("Disaggregated request received without bootstrap room id.")
    side = "do_remote_decode" if config.kv.produces else "do_remote_prefill"
    return {**room, side: True}


def _too_long(most: int, prompt: int, asked: int | None) -> str:
    head = f"This model's maximum context length is {most} tokens. However, "
    if prompt >= most:
        return (
            f"{head}your prompt contains at least {most + 1} input tokens. Please reduce the "
            "length of the input prompt."
        )
    return (
        f"{head}you requested {asked} output tokens and your prompt contains {prompt} input "
        f"tokens, for a total of {prompt + (asked or 0)} tokens. Please reduce the length of the "
        "input prompt or the number of requested output tokens."
    )


def usage(call: Call) -> dict[str, Any]:
    """Token counts of a finished request."""
    prompt, done = len(call.request.tokens), call.request.generated
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + done,
        "completion_tokens": done,
        "prompt_tokens_details": None,
    }


def _offered(call: Call) -> dict[str, Any] | None:
    """KV is handed over only by a request that its token limit ended, as vLLM's connector does."""
    return call.request.offered if call.request.finish == "length" else None


def whole(call: Call, text: str) -> dict[str, Any]:
    """The body of a request that was not streamed."""
    choice: dict[str, Any] = {"index": 0}
    if call.chat:
        choice["message"] = {"role": "assistant", "content": text, "tool_calls": []}
    else:
        choice["text"] = text
    choice |= {"logprobs": None, "finish_reason": call.request.finish, "stop_reason": None}
    return {
        "id": call.shown_id,
        "object": "chat.completion" if call.chat else "text_completion",
        "created": call.created,
        "model": call.model,
        "choices": [choice],
        "usage": usage(call),
        "kv_transfer_params": _offered(call),
    }


def chunk(call: Call, text: str, first: bool, finish: str = "") -> dict[str, Any]:
    """One event of a stream."""
    choice: dict[str, Any] = {"index": 0}
    if call.chat:
        choice["delta"] = {"content": text, **({"role": "assistant"} if first else {})}
    else:
        choice["text"] = text
    choice |= {"logprobs": None, "finish_reason": finish or None}
    return {
        "id": call.shown_id,
        "object": "chat.completion.chunk" if call.chat else "text_completion",
        "created": call.created,
        "model": call.model,
        "choices": [choice],
    }


def usage_chunk(call: Call) -> dict[str, Any]:
    """The last event of a stream that asked for usage."""
    return {**chunk(call, "", False), "choices": [], "usage": usage(call)}


def event(data: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"
