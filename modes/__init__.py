"""The mode catalogue: one recipe per mode, as data."""
