"""The loops: the only writer of observed state, the only caller of steps."""
