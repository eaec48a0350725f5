"""What the console may ask: attach to a backend or start one."""
