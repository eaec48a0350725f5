"""SQLite and its migrations."""
