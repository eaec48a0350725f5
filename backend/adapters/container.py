"""The container runtime: instances in containers of docker or podman, through their client.

The client is the supervised process of the process runtime, whose directories, claims, logs and
generations these instances share; here is what keeps containers and clients together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from backend.adapters.process import ProcessRuntime, StopResult
from backend.adapters.ssh.pool import SshPool
from backend.domain.errors import RemoteFailed
from backend.domain.host import Host
from backend.domain.instance import LaunchSpec, ProcessStatus
from backend.steps import containing
from backend.steps.common import instance_id

CLEAN_S = 30.0
"""How long removing a container may take beside its grace."""
OUT_OF_MEMORY = "the kernel killed it for memory (OOM)"


class ContainerRuntime(ProcessRuntime):
    """Starts, watches and ends instances as each host's entry wants it: in containers where it
    names docker or podman, else as bare processes, like a launch without an image (some routers).
    """

    def __init__(self, pool: SshPool, owner: str) -> None:
        super().__init__(pool, owner)
        self._told: dict[tuple[str, str, int], str] = {}

    async def start(
        self,
        host: Host,
        instance: str,
        generation: int,
        spec: LaunchSpec,
        labels: Mapping[str, str],
        *,
        row: str = "",
        timeout: float = 30.0,
        recorded: LaunchSpec | None = None,
    ) -> ProcessStatus:
        """As the process runtime's. An image that is missing is pulled by the instance itself, as
        its log shows, so that a long pull holds up nobody."""
        if spec.image is None or host.runtime == "process":
            return await super().start(
                host, instance, generation, spec, labels, row=row, timeout=timeout
            )
        inner = containing.container_spec(host.runtime, instance, generation, spec, labels)
        return await super().start(
            host, instance, generation, inner, labels, row=row, timeout=timeout, recorded=spec
        )

    async def stop(self, host: Host, instance: str, grace_s: float) -> StopResult:
        """As the process runtime's; then no container of the instance is left either.

        A container that outlived its client gets its own grace.
        """
        result = await super().stop(host, instance, grace_s)
        left = await self._clean(host, instance, grace_s)
        if not left:
            return result
        return replace(result, gone=False, survivors=result.survivors + len(left))

    async def end_strays(self, host: Host, instance: str, last: ProcessStatus | None) -> None:
        """As the process runtime's; containers of the instance go first, known by their label."""
        await self._clean(host, instance, 0.0)
        await super().end_strays(host, instance, last)

    async def remove(self, host: Host, instance: str) -> None:
        """As the process runtime's, which refuses while something lives; containers go first."""
        await self._clean(host, instance, 0.0)
        await super().remove(host, instance)

    async def _clean(self, host: Host, instance: str, grace_s: float) -> tuple[str, ...]:
        if host.runtime == "process":
            return ()
        whole = max(0, round(grace_s))
        args = [host.runtime, host.work_dir, instance_id(instance), str(whole)]
        out = await self._pool.run(host, containing.END, args=args, timeout=whole + CLEAN_S)
        try:
            return containing.left(out.stdout)
        except ValueError as exc:
            raise RemoteFailed.of(
                "host.answer", f"host {host.name}: {exc}.", values={"host": host.name}
            ) from exc

    async def statuses(self, host: Host, *, owner: str | None = None) -> list[ProcessStatus]:
        """As the process runtime's; an ended instance says so when its memory was the cause."""
        return await self._explained(host, await super().statuses(host, owner=owner))

    async def status(self, host: Host, instance: str) -> ProcessStatus:
        """One instance; see `statuses`."""
        (found,) = await self._explained(host, [await super().status(host, instance)])
        return found

    async def _explained(self, host: Host, found: list[ProcessStatus]) -> list[ProcessStatus]:
        """Ask the runtime once about every end that it has not explained yet."""
        if host.runtime == "process":
            return found
        told = self._told
        new = [
            s
            for s in found
            if s.state == "exited"
            and s.owner == self.owner
            and (host.name, s.instance, s.generation) not in told
        ]
        if new:
            args = [host.runtime, host.work_dir, *(s.instance for s in new)]
            out = await self._pool.run(host, containing.INSPECT, args=args, check=False)
            ends = containing.ended(out.stdout)
            for s in new:
                end = ends.get(s.instance)
                oom = end is not None and end.oom
                told[host.name, s.instance, s.generation] = OUT_OF_MEMORY if oom else ""
        return [
            s.model_copy(update={"detail": detail})
            if (detail := told.get((host.name, s.instance, s.generation), ""))
            else s
            for s in found
        ]
