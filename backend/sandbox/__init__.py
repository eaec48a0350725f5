"""Embedded SSH hosts and a simulated engine: the demo and most tests run on them."""
