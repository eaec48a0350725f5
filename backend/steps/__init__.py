"""Operations: the remote scripts that change a host, as text plus a pure parse of the answer."""
