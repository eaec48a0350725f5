"""What is not said to be known is not known."""

from __future__ import annotations

from backend.adapters.recipes import load_catalogue
from backend.domain.rules.known import Known, ModelSeen


def test_nothing_is_known_unless_it_is_said() -> None:
    known = Known(load_catalogue())
    assert known.hosts == frozenset()
    for mapping in (known.widths, known.entries, known.facts, known.port_ranges, known.taken,
                    known.models, known.versions):  # fmt: skip
        assert mapping == {}
    assert known.kv_transfer_ifname is None
    assert known.services is None, "no services is another thing than none that is known"
    assert known.inventory is True
    assert known.port_range("any") == (40000, 40063)


def test_a_model_that_was_not_read_has_nothing_to_compare() -> None:
    seen = ModelSeen("unknown")
    assert (seen.config, seen.config_digest, seen.weights_digest, seen.note) == (None, "", "", "")
