"""What the console knows, and the messages by which it says so."""
