"""Facts: a command text and a pure parse of its output."""
