"""A simulated vLLM: its command line, its log, its HTTP API and its NIXL transfer, without a model.

It starts in well under a second, answers deterministically, and moves real bytes from prefill to
decode over a real side channel, so that a wrong transfer gives a wrong answer.
"""
