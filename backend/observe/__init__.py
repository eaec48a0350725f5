"""Watching: health, metrics, registries."""
