"""The engine core: the child process that computes and keeps KV and owns the side channel.

It is forked before anything heavy is imported and uses the standard library only. As in real
vLLM it is in the API process's process group and outlives a killed parent, still holding its
side-channel port, until it is told to end.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from backend.sandbox.engine import kv, link
from backend.sandbox.engine.config import EngineConfig
from backend.sandbox.engine.connectors import Connector, TransferFailure, create
from backend.sandbox.engine.log import Log


class Core:
    """Answers the API process's orders over one socket."""

    def __init__(self, config: EngineConfig, sock: socket.socket) -> None:
        self._config, self._sock = config, sock
        self._log, self._worker = Log("EngineCore"), Log("Worker")
        self._sending = threading.Lock()
        self._cache = kv.PrefixCache(config.block_size, config.cache_tokens, config.prefix_caching)
        self._caching = threading.Lock()
        self._connector: Connector | None = None

    def run(self) -> None:
        """Start up, then obey until the parent is gone."""
        if self._config.flavor == "sglang":
            self._start_sglang()
        else:
            self._start_vllm()
        self._send({"event": "ready"})
        try:
            while True:
                self._obey(link.receive(self._sock))
        except link.Closed:
            threading.Event().wait()  # the parent was killed: stay, as the real one does

    def _start_sglang(self) -> None:
        config, log = self._config, self._log
        log.info("", f"Load weight begin. avail mem=78.61 GB, tp={config.tp}")
        log.info(
            "", f"KV Cache is allocated. dtype: {config.dtype}, #tokens: {config.cache_tokens}"
        )
        self._connect()
        log.info("", f"max_total_num_tokens={config.cache_tokens}, "
                 f"context_len={config.max_model_len}")  # fmt: skip

    def _connect(self) -> None:
        self._connector = create(self._config, self._worker, self)
        if self._connector:
            self._connector.announce()
            self._listen(self._connector)

    def _start_vllm(self) -> None:
        config, log, worker = self._config, self._log, self._worker
        log.info(
            "core.py:133",
            f"Initializing a V1 LLM engine (v0.32.0) with config: model='{config.model.name}', "
            f"speculative_config=None, dtype=torch.{config.dtype}, "
            f"max_seq_len={config.max_model_len}, tensor_parallel_size={config.tp}",
        )
        self._fail_without_library()
        worker.info("gpu_model_runner.py:4104", f"Starting to load model {config.model.name}...")
        worker.info("default_loader.py:501", "Loading weights took 0.01 seconds")
        size = f"{config.cache_tokens:,}"
        many = config.cache_tokens / config.max_model_len
        log.info(
            "kv_cache_utils.py:2327",
            f"GPU KV cache size: {size} tokens, Maximum concurrency for "
            f"{config.max_model_len:,} tokens per request: {many:.2f}x",
        )
        self._connect()
        log.info("core.py:402", "init engine (profile, create kv cache, warmup model) took 0.02 s")

    def _fail_without_library(self) -> None:
        kv = self._config.kv
        if kv is None or self._config.without != kv.connector:
            return
        self._worker.warning(
            "mooncake_connector.py:82",
            "Please install mooncake by following the instructions at "
            "https://github.com/kvcache-ai/Mooncake/blob/main/doc/en/build.md to run VLLM with "
            "MooncakeTransferEngine.",
        )
        self._worker.error("mooncake_connector.py:1179", "Mooncake is not available")
        self._log.error(
            "core.py:1390",
            "RuntimeError: Worker failed with error 'Mooncake is not available', please check the "
            "stack trace above for the root cause",
        )
        os._exit(1)

    def _listen(self, connector: Connector) -> None:
        try:
            connector.listen()
        except OSError as e:
            assert self._config.kv
            if self._config.kv.family != "nixl":
                self._log.error("core.py:1390", f"OSError: [Errno {e.errno}] {e.strerror}")
                os._exit(1)
            where = f"tcp://{self._config.kv.side_host}:{self._config.kv.side_port}"
            sys.stderr.write(
                "Exception in thread nixl_handshake_listener:\nTraceback (most recent call last):\n"
                '  File "vllm/distributed/kv_transfer/kv_connector/v1/nixl/base_scheduler.py", '
                "line 351, in _nixl_handshake_listener\n"
                "    with zmq_ctx(zmq.ROUTER, path) as sock:\n"
                f"zmq.error.ZMQError: {e.strerror} (addr='{where}')\n"
            )
            sys.stderr.flush()
            # The real one neither serves, exits nor listens to SIGTERM then.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            threading.Event().wait()

    def expired(self, request: str) -> None:
        """The connector let go of a prompt's KV that nobody fetched."""
        self._send({"event": "expired", "request": request})

    def sent(self, size: int, seconds: float) -> None:
        """The connector handed a prompt's KV over."""
        self._send({"event": "sent", "bytes": size, "seconds": seconds})

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            try:
                link.send(self._sock, message)
            except OSError:
                return  # the parent is gone: nobody waits for this

    def _obey(self, order: dict[str, Any]) -> None:
        if order["op"] == "load":  # it waits for another engine
            threading.Thread(target=self._answer, args=(order,), daemon=True).start()
        else:
            self._answer(order)

    def _answer(self, order: dict[str, Any]) -> None:
        try:
            result = self._load(order) if order["op"] == "load" else self._prefill(order)
        except Exception:  # noqa: BLE001 (an engine core that meets the unforeseen dies loudly)
            self._log.error("core.py:1380", traceback.format_exc())
            os._exit(1)
        self._send({"id": order["id"], **result})

    def _prefill(self, order: dict[str, Any]) -> dict[str, Any]:
        """Compute a prompt's KV; with `keep` hold it for a decode and say how to get it."""
        tokens = order["tokens"]
        digests = kv.chain(tokens)
        with self._caching:
            cached = self._cache.hit(digests, len(tokens))
            self._cache.add(digests, len(tokens))
        result: dict[str, Any] = {"state": digests[-1].hex(), "cached": cached}
        if order.get("keep") and self._connector:
            data = kv.to_bytes(digests)
            if order.get("corrupt"):
                data = bytes(b ^ 0x5A for b in data)
            if not order.get("drop"):
                self._connector.keep(order["request"], order["params"], data)
            result["params"] = self._connector.offer(order["request"], len(tokens))
        return result

    def _load(self, order: dict[str, Any]) -> dict[str, Any]:
        """Get a prompt's KV from the prefill that `params` names."""
        tokens, params, connector = order["tokens"], order["params"], self._connector
        if connector is None or not connector.complete(params):
            self._log.warning(
                "base_scheduler.py:402",
                f"Got invalid KVTransferParams: {params}. This request will not utilize KVTransfer",
            )
            return {"invalid": True}
        digests = kv.chain(tokens)
        with self._caching:
            cached = self._cache.hit(digests, len(tokens))
        skip = cached // kv.GRANULE * kv.GRANULE_BYTES
        began = time.perf_counter()
        try:
            data = connector.fetch(params, skip, order["timeout"])
        except TransferFailure as failure:
            self._log_failure(order, failure, len(tokens) - cached)
            return {"failed": failure.kind, "cached": cached}
        with self._caching:
            self._cache.add(digests, len(tokens))
        return {
            "state": kv.last_state(data).hex(),
            "cached": cached,
            "bytes": len(data),
            "seconds": time.perf_counter() - began,
            "blocks": -(-(len(tokens) - cached) // self._config.block_size),
        }

    def _log_failure(self, order: dict[str, Any], failure: TransferFailure, affected: int) -> None:
        kv, request = self._config.kv, order["request"]
        assert self._connector
        self._connector.explain(request, order["params"], failure)
        if kv is not None and kv.failure_policy == "fail" and self._config.flavor == "vllm":
            self._log.error(
                "scheduler.py:3417",
                f"Failing 1 request(s) due to KV load failure (failure_policy=fail, {affected} "
                f"tokens affected). Request IDs: {{'{request}'}}",
            )


def _ended(number: int, frame: object) -> NoReturn:
    log = Log("EngineCore")
    log.info("core.py:1454", "[shutdown] EngineCore: trigger received signal=SIGTERM")
    log.info("core.py:1499", "[shutdown] EngineCore: exiting busy loop")
    os._exit(0)


def fork(config: EngineConfig, http: socket.socket) -> tuple[int, socket.socket]:
    """Start the core; returns its pid and this process's end of the link."""
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    try:
        ours.close()
        http.close()
        signal.signal(signal.SIGTERM, _ended)
        signal.signal(signal.SIGINT, _ended)
        Path("/proc/self/comm").write_text("VLLM::EngineCor")  # the kernel keeps 15 characters
        Core(config, theirs).run()
    except BaseException:  # noqa: BLE001 (a forked child must never return into its parent's code)
        Log("EngineCore").error("core.py:1380", traceback.format_exc())
    os._exit(1)
