"""What each connector counts of its transfers, under its own names.

NIXL counts on the side that fetches, Mooncake on the side that sends.
"""

from __future__ import annotations

from backend.sandbox.engine.series import Counts, Histogram
from backend.sandbox.engine.transfer import Family

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0)
_POST = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
_BYTES = tuple(2.0 ** (10 + i) for i in range(1, 24, 2))
_DESCRIPTORS = (10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000)
_MILLISECONDS = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10000, 30000)
_MEGABYTES = (0.01, 0.1, 1, 10, 50, 100, 500, 1000, 5000)


class Transfers:
    """A connector that counts nothing, as Ascend's does; the others add to it.

    `moved` counts transfers for the log whether or not the connector shows them.
    """

    def __init__(self) -> None:
        self.families: list[Counts | Histogram] = []
        self.moved = 0
        self.failures = self.expiries = 0

    def received(self, size: int, seconds: float, blocks: int) -> None:
        """Decode fetched a prompt's KV: bytes, seconds, blocks."""
        self.moved += 1

    def failed(self) -> None:
        """Decode did not get a prompt's KV."""
        self.failures += 1

    def sent(self, size: int, seconds: float) -> None:
        """Prefill handed a prompt's KV over."""
        self.moved += 1

    def expired(self) -> None:
        """Prefill's lease on a prompt's KV ran out."""
        self.expiries += 1

    def summary(self, moved: int) -> str:
        """The line that the engine logs every few seconds."""
        return (
            f"KV Transfer metrics: Num successful transfers={moved}, "
            f"Num failed transfers={self.failures}, Num KV expired reqs={self.expiries}"
        )


def _counter(name: str, help_text: str) -> Counts:
    return Counts(f"vllm:{name}_total", "counter", help_text)


class NixlTransfers(Transfers):
    """As vLLM's NIXL connector: the fetching side observes."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = Histogram(
            "vllm:nixl_xfer_time_seconds", "Histogram of transfer duration for NIXL KV transfers.",
            _SECONDS,
        )  # fmt: skip
        self._post = Histogram(
            "vllm:nixl_post_time_seconds", "Histogram of transfer post time for NIXL.", _POST
        )
        self._bytes = Histogram(
            "vllm:nixl_bytes_transferred", "Histogram of bytes transferred per NIXL transfer.",
            _BYTES,
        )  # fmt: skip
        self._descriptors = Histogram(
            "vllm:nixl_num_descriptors", "Histogram of descriptors per NIXL transfer.",
            _DESCRIPTORS,
        )  # fmt: skip
        self._failed = _counter("nixl_num_failed_transfers", "Failed transfers.")
        self._expired = _counter("nixl_num_kv_expired_reqs", "Requests whose KV expired.")
        self.families = [
            self._seconds, self._post, self._bytes, self._descriptors, self._failed,
            _counter("nixl_num_failed_notifications", "Failed notifications."), self._expired,
            _counter("nixl_num_notifications_after_expiry", "Notifications after expiry."),
        ]  # fmt: skip

    def received(self, size: int, seconds: float, blocks: int) -> None:
        """Observe a fetch."""
        super().received(size, seconds, blocks)
        self._seconds.observe(seconds)
        self._post.observe(seconds / 20)
        self._bytes.observe(size)
        self._descriptors.observe(2 * blocks)

    def failed(self) -> None:
        """Count a fetch that failed."""
        super().failed()
        self._failed.add()

    def expired(self) -> None:
        """Count a lease that ran out."""
        super().expired()
        self._expired.add()


class MooncakeTransfers(Transfers):
    """As vLLM's Mooncake connector: the sending side observes, the other counts what failed."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = Histogram(
            "vllm:mooncake_xfer_time_seconds", "Transfer duration of Mooncake KV transfers.",
            _SECONDS,
        )  # fmt: skip
        self._bytes = Histogram(
            "vllm:mooncake_bytes_transferred", "Bytes transferred per Mooncake transfer.", _BYTES
        )
        self._descriptors = Histogram(
            "vllm:mooncake_num_descriptors", "Descriptors per Mooncake transfer.", _DESCRIPTORS
        )
        self._lost = _counter("mooncake_num_failed_recvs", "Failed receives.")
        self._expired = _counter("mooncake_num_kv_expired_reqs", "Requests whose KV expired.")
        self.families = [
            self._seconds, self._bytes, self._descriptors,
            _counter("mooncake_num_failed_transfers", "Failed transfers."), self._lost,
            self._expired,
        ]  # fmt: skip

    def sent(self, size: int, seconds: float) -> None:
        """Observe what was handed over."""
        super().sent(size, seconds)
        self._seconds.observe(seconds)
        self._bytes.observe(size)
        self._descriptors.observe(max(1, size // 4096))

    def failed(self) -> None:
        """Count a receive that failed."""
        super().failed()
        self._lost.add()

    def expired(self) -> None:
        """Count a lease that ran out."""
        super().expired()
        self._expired.add()


class SglangTransfers(Transfers):
    """As SGLang: both sides observe the bootstrap, prefill the bytes as well."""

    def __init__(self) -> None:
        super().__init__()

        def histogram(name: str, bounds: tuple[float, ...]) -> Histogram:
            return Histogram(f"sglang:kv_transfer_{name}", f"KV transfer: {name}.", bounds)

        def counter(name: str) -> Counts:
            return Counts(f"sglang:{name}_total", "counter", name.replace("_", " "))

        self._bootstrap = histogram("bootstrap_ms", _MILLISECONDS)
        self._latency = histogram("latency_ms", _MILLISECONDS)
        self._megabytes = histogram("total_mb", _MEGABYTES)
        self._failed = counter("num_transfer_failed_reqs")
        self._abandoned = counter("num_bootstrap_failed_reqs")
        self.families = [
            self._bootstrap, self._latency, self._megabytes, self._failed, self._abandoned,
        ]  # fmt: skip

    def received(self, size: int, seconds: float, blocks: int) -> None:
        """Observe a fetch."""
        super().received(size, seconds, blocks)
        self._bootstrap.observe(seconds * 1000)

    def sent(self, size: int, seconds: float) -> None:
        """Observe what was handed over."""
        super().sent(size, seconds)
        self._bootstrap.observe(seconds * 1000)
        self._latency.observe(seconds * 1000)
        self._megabytes.observe(size / 2**20)

    def failed(self) -> None:
        """Count a fetch that failed."""
        super().failed()
        self._failed.add()

    def expired(self) -> None:
        """Count a room that no decode came to."""
        super().expired()
        self._abandoned.add()

    def summary(self, moved: int) -> str:
        """SGLang logs none."""
        return ""


def for_family(family: Family | None) -> Transfers:
    """The counts of a connector family."""
    kinds: dict[Family, type[Transfers]] = {
        "nixl": NixlTransfers, "mooncake": MooncakeTransfers, "sglang": SglangTransfers,
    }  # fmt: skip
    return Transfers() if family is None else kinds.get(family, Transfers)()
