"""Questions and answers laid over a screen."""
