"""Every rule of diagnosis, in the order of preference."""

from __future__ import annotations

from backend.domain.diagnosis.model import Rule
from backend.domain.diagnosis.rules_accelerator import ACCELERATOR
from backend.domain.diagnosis.rules_engine import ENGINE
from backend.domain.diagnosis.rules_host import HOST
from backend.domain.diagnosis.rules_library import LIBRARY
from backend.domain.diagnosis.rules_memory import MEMORY
from backend.domain.diagnosis.rules_network import NETWORK
from backend.domain.diagnosis.rules_pairing import PAIRING
from backend.domain.diagnosis.rules_ports import PORTS
from backend.domain.diagnosis.rules_quiet import QUIET
from backend.domain.diagnosis.rules_rdma import RDMA
from backend.domain.diagnosis.rules_router import ROUTER
from backend.domain.diagnosis.rules_timeout import TIMEOUT
from backend.domain.diagnosis.rules_transfer import TRANSFER

RULES: tuple[Rule, ...] = (
    *PORTS, *PAIRING, *TRANSFER, *RDMA, *NETWORK, *ROUTER, *ENGINE, *MEMORY, *ACCELERATOR,
    *LIBRARY, *HOST, *TIMEOUT, *QUIET,
)  # fmt: skip

BY_ID: dict[str, Rule] = {rule.id: rule for rule in RULES}
