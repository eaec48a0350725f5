"""The ssh configuration is read once a destination, and anew whenever one of its files changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from asyncssh.config import ConfigParseError

from backend.adapters.ssh.config import route
from backend.adapters.ssh.parsed import Parsed
from backend.domain.host import Host

GPU = Host(name="gpu1", address="gpu1")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "one").write_text("Host gpu1\n  User ml\n")
    file = tmp_path / "config"
    file.write_text(f"Include {tmp_path}/more/*\nHost gpu*\n  HostName 10.0.0.7\n  Port 2200\n")
    return file


def test_a_second_look_reads_nothing_and_says_the_same(config: Path) -> None:
    parsed = Parsed()
    first, again = route(GPU, (config,), parsed), route(GPU, (config,), parsed)
    assert first.options is not None
    assert again.options is first.options
    assert (first.hostname, first.port, first.user) == ("10.0.0.7", 2200, "ml")
    assert first == route(GPU, (config,), parsed)
    other = route(Host(name="gpu1", address="gpu1", user="root", port=99), (config,), parsed)
    assert (other.user, other.port, other.hostname) == ("root", 99, "10.0.0.7")


def test_any_change_of_any_file_counts(config: Path) -> None:
    parsed = Parsed()
    included = config.parent / "more" / "one"
    assert route(GPU, (config,), parsed).user == "ml"
    included.write_text("Host gpu1\n  User al\n")
    os.utime(included, ns=(1, 1))
    assert route(GPU, (config,), parsed).user == "al"
    (config.parent / "more" / "a-first").write_text("Host gpu1\n  User new\n  ProxyJump hop\n")
    seen = route(GPU, (config,), parsed)
    assert seen.hops == ("hop",)
    config.write_text("Host gpu1\n  HostName 10.0.0.8\n  Ciphers aes128-ctr\n")
    changed = route(GPU, (config,), parsed)
    assert (changed.hostname, changed.user, changed.port) == ("10.0.0.8", "", 22)
    assert changed.chooses_ciphers
    assert not seen.chooses_ciphers
    config.unlink()
    assert route(GPU, (), parsed).hostname == "gpu1"


@pytest.mark.parametrize(
    "line",
    ["Match exec true", "match  originalhost gpu1 exec=true", "Match final", "Match canonical",
     "CanonicalizeHostname yes"],
)  # fmt: skip
def test_what_may_say_otherwise_the_next_time_is_read_each_time(tmp_path: Path, line: str) -> None:
    file = tmp_path / "config"
    file.write_text(f"{line}\n  User ml\n")
    assert Parsed().options(GPU, (file,))[1] is False
    assert route(GPU, (file,)).options is None


def test_an_unreadable_configuration_is_told_each_time(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host gpu1\n  Port many\n")
    parsed = Parsed()
    for _ in range(2):
        with pytest.raises(ConfigParseError):
            route(GPU, (file,), parsed)
    file.write_text(f"Include {file}\nInclude {file}\n")
    with pytest.raises(ConfigParseError):
        route(GPU, (file,), parsed)
