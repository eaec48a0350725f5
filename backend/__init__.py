"""The backend: everything but drawing."""
