"""SSH connections that tell the truth."""
