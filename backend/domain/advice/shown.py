"""Numbers of advice as people read them."""

from __future__ import annotations


def proportion(prompt: float, output: float) -> str:
    """`20:1` or `1:20`."""
    if prompt >= output:
        return f"{prompt / output:.3g}:1"
    return f"1:{output / prompt:.3g}"


def count(value: float) -> str:
    """A count with thousands apart."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def size(bytes_: float) -> str:
    """Bytes in binary units, three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if bytes_ < 1024:
            return f"{bytes_:.3g} {unit}"
        bytes_ /= 1024
    return f"{bytes_:.3g} TiB"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.2g} µs"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
