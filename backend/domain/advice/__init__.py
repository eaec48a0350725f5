"""Whether disaggregation pays for a deployment and its traffic: sizes, times, verdicts. Pure."""
