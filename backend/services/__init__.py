"""Use cases: write desired state, then hint the loop."""
