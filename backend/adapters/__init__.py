"""The only sockets, processes and foreign files."""
