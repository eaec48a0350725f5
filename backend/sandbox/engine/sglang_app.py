"""SGLang's routes over the same engine."""

from __future__ import annotations

from typing import Any

from backend.sandbox.engine import sglang_config
from backend.sandbox.engine.app import App, Exchange
from backend.sandbox.engine.openai import HttpError
from backend.sandbox.engine.serving import Engine, EngineDead, LoadFailed


class SglangApp(App):
    """Routes of one SGLang server."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        for path in ("/version", "/load", "/tokenize", "/v1/completions/render",
                     "/v1/chat/completions/render", "/ping"):  # fmt: skip
            for method in ("GET", "POST"):
                self._routes.pop((method, path), None)
        self._routes |= {
            ("GET", "/health_generate"): self._health,
            ("GET", "/get_server_info"): self._server_info,
            ("GET", "/server_info"): self._server_info,
            ("GET", "/get_model_info"): self._model_info,
            ("GET", "/model_info"): self._model_info,
            ("POST", "/generate"): self._generate,
        }

    async def _metrics(self, exchange: Exchange) -> None:
        if not self.engine.config.shows_metrics:
            raise HttpError(404, "Not Found", "Not Found")
        await super()._metrics(exchange)

    async def _server_info(self, exchange: Exchange) -> None:
        await exchange.answer(200, sglang_config.shown(self.engine.config))

    async def _model_info(self, exchange: Exchange) -> None:
        config = self.engine.config
        await exchange.answer(
            200,
            {
                "model_path": config.model.name, "tokenizer_path": config.model.name,
                "is_generation": True, "preferred_sampling_params": None,
            },
        )  # fmt: skip

    async def _generate(self, exchange: Exchange) -> None:
        """SGLang's own call; whole answers only."""
        body = await exchange.json()
        if not isinstance(body, dict) or body.get("stream"):
            raise HttpError(400, "text or input_ids, without stream", "BadRequestError")
        sampling = body.get("sampling_params") or {}
        asked: dict[str, Any] = {
            "prompt": body.get("text") if body.get("text") is not None else body.get("input_ids"),
            "max_tokens": sampling.get("max_new_tokens", 128),
            "ignore_eos": sampling.get("ignore_eos", False),
            **{k: v for k, v in body.items() if k.startswith("bootstrap_")},
        }
        call = self._parse(asked, False, None)
        tokens = self.engine.generate(call.request, lambda: exchange.client_gone)
        try:
            text = "".join([token async for token in tokens])
        except (LoadFailed, EngineDead):
            self._failed(call)
            raise HttpError(500, "KV transfer failed", "InternalServerError") from None
        meta = {
            "id": call.shown_id, "finish_reason": {"type": call.request.finish},
            "prompt_tokens": len(call.request.tokens), "cached_tokens": call.request.cached,
            "completion_tokens": call.request.generated,
        }  # fmt: skip
        await exchange.answer(200, {"text": text, "meta_info": meta})
