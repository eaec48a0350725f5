"""Spacing, tones and the two themes."""
