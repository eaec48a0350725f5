"""Reusable widgets; they know nothing of screens, and draw literal text only."""
