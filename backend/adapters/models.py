"""A model as a host has it, read over SFTP: its configuration, and digests of what it is.

Read anew only when the folder's listing changed. A hub id is looked up in the login's own cache of
the hub; without a copy there it stays unknown.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import NotFound, PdError
from backend.domain.host import Host
from backend.domain.rules.known import ModelSeen

MOST_CONFIG = 2 << 20
MOST_INDEX = 32 << 20
"""Bytes read of a configuration and of a weights index; larger ones are not what they seem."""
KEPT = 512
TIMEOUT_S = 10.0
CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
WEIGHTS = (".safetensors", ".bin", ".gguf", ".pt", ".pth")
HUB_ID = re.compile(r"^[\w.-]+/[\w.-]+$")
HUB_CACHE = ".cache/huggingface/hub"
REVISION = re.compile(r"^[\w./-]+$")
PACKAGES = {"vllm": "vllm", "sglang": "sglang"}
"""The distribution whose version is the program's."""

Listing = dict[str, tuple[int, int]]


class ModelReader:
    """Reads models and engine versions; remembers what it read while it stays as it was."""

    def __init__(self, pool: SshPool, *, timeout_s: float = TIMEOUT_S) -> None:
        self._pool, self._timeout = pool, timeout_s
        self._seen: dict[tuple[str, str, int, str], tuple[Listing, ModelSeen]] = {}
        self._configs: dict[str, Mapping[str, Any]] = {}

    async def read(
        self, host: Host, model: str, *, revision: str = "main", hub_cache: str = ""
    ) -> ModelSeen:
        """`model` (an absolute path, or a hub id) as `host` has it.

        Never raises for the host's sake: what could not be read is `unknown`, with the reason.
        `hub_cache` is the hub's cache folder where it is not the login's usual one.
        """
        try:
            if model.startswith("/"):
                return await self._folder(host, model, missing=True)
            if not HUB_ID.match(model):
                note = f"{model} is neither an absolute path nor a hub id"
                return ModelSeen("unknown", note=note)
            folder = await self._snapshot(host, model, revision, hub_cache or HUB_CACHE)
            return await self._folder(host, folder, missing=False)
        except NotFound:
            return ModelSeen("unknown", note=f"{host.name} has no local copy of {model}")
        except PdError as error:
            return ModelSeen("unknown", note=error.problem.message)

    async def _snapshot(self, host: Host, model: str, revision: str, cache: str) -> str:
        """The folder of a hub id's revision. Raises NotFound."""
        base = posixpath.join(cache, f"models--{model.replace('/', '--')}")
        if not REVISION.match(revision) or ".." in revision.split("/"):
            raise NotFound.of("model.revision", f"{revision!r} is no revision.")
        try:
            ref = f"{base}/refs/{revision}"
            raw = await self._pool.read_file(host, ref, limit=200, timeout=self._timeout)
            revision = posixpath.basename(raw.decode("ascii", "replace").strip())
        except NotFound:
            pass  # a commit's own id has no ref of its own
        return f"{base}/snapshots/{revision}"

    async def _folder(self, host: Host, path: str, *, missing: bool) -> ModelSeen:
        try:
            listing = await self._pool.listing(host, path, timeout=self._timeout)
        except NotFound:
            if not missing:
                raise
            return ModelSeen("missing", note=f"{host.name} has no {path}")
        key = (host.name, host.address, host.port, path)
        before = self._seen.get(key)
        if before is not None and before[0] == listing:
            return before[1]
        seen = await self._read(host, path, listing)
        if len(self._seen) >= KEPT:
            self._seen.clear()
            self._configs.clear()
        self._seen[key] = (listing, seen)
        return seen

    async def _read(self, host: Host, path: str, listing: Listing) -> ModelSeen:
        weights = {n: size for n, (size, _) in sorted(listing.items()) if n.endswith(WEIGHTS)}
        digest = hashlib.sha256(json.dumps(weights).encode()) if weights else None
        if digest is not None and INDEX in listing:
            digest.update(await self._file(host, f"{path}/{INDEX}", MOST_INDEX))
        weights_digest = digest.hexdigest() if digest is not None else ""
        if CONFIG not in listing:
            note = f"{path} on {host.name} has no {CONFIG}"
            return ModelSeen("found", weights_digest=weights_digest, note=note)
        raw = await self._file(host, f"{path}/{CONFIG}", MOST_CONFIG)
        config = _object(raw)
        if config is None:
            note = f"{CONFIG} on {host.name} is no JSON object"
            return ModelSeen("found", None, hashlib.sha256(raw).hexdigest(), weights_digest, note)
        plain = json.dumps(config, sort_keys=True).encode()
        config_digest = hashlib.sha256(plain).hexdigest()
        shared = self._configs.setdefault(config_digest, config)
        return ModelSeen("found", shared, config_digest, weights_digest)

    async def _file(self, host: Host, path: str, limit: int) -> bytes:
        return await self._pool.read_file(host, path, limit=limit, timeout=self._timeout)

    async def version(self, host: Host, program: str) -> str:
        """The version of an engine installed in the venv that the host's entry names; empty where
        that cannot be told. Never raises for the host's sake."""
        prefix = host.executables.get(program, "").removesuffix(f"/bin/{program}")
        if not prefix.startswith("/") or program not in PACKAGES:
            return ""
        try:
            for python in await self._pool.listing(host, f"{prefix}/lib", timeout=self._timeout):
                if python.startswith("python3"):
                    site = f"{prefix}/lib/{python}/site-packages"
                    names = await self._pool.listing(host, site, timeout=self._timeout)
                    return _version(names, PACKAGES[program])
        except PdError:
            return ""
        return ""


def _version(names: Listing, package: str) -> str:
    found = [re.fullmatch(rf"{package}-([^-]+)\.dist-info", name) for name in sorted(names)]
    return next((m[1] for m in found if m), "")


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
