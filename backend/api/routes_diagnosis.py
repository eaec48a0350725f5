"""Why a group or an instance does not serve, by its logs."""

from __future__ import annotations

from fastapi import APIRouter

from backend.api.deps import TheBackend
from backend.domain.diagnosis.model import Diagnosis, GroupDiagnosis
from backend.services.diagnosing import diagnose_group, diagnose_instance

router = APIRouter(tags=["deployments"])


@router.get("/groups/{name}/diagnosis")
async def group(name: str, backend: TheBackend) -> GroupDiagnosis:
    """All logs of a group, read together: its causes first."""
    backend.groups.document(name)
    return await diagnose_group(backend.world, name)


@router.get("/instances/{instance}/diagnosis")
async def instance(instance: str, backend: TheBackend, generation: int | None = None) -> Diagnosis:
    """One instance's log in the light of its peers', or that of an earlier attempt."""
    return await diagnose_instance(backend.world, instance, generation)
