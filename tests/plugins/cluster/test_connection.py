"""Which Ray cluster a job uses."""

import os
import socket
from pathlib import Path

import pytest

from nmt.errors import NMTError
from nmt.plugins.cluster import connection
from nmt.plugins.cluster.connection import NEW, address_to_use, cause_of_death


@pytest.fixture
def record(monkeypatch, tmp_path) -> Path:
    """The file in which `ray start` records an address; it does not exist yet."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    path = tmp_path / "ray" / "ray_current_cluster"
    path.parent.mkdir()
    return path


@pytest.fixture
def port():
    """A port where a program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_without_a_record_ray_starts(record):
    assert address_to_use(None) == NEW
    record.write_text("")
    assert address_to_use(None) == NEW


def test_an_address_wins_over_the_record(record, port, monkeypatch):
    record.write_text("127.0.0.1:1")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    assert address_to_use(f"ray://localhost:{port}") == f"ray://localhost:{port}"
    assert address_to_use(None) == f"127.0.0.1:{port}"
    assert address_to_use("local") == "local"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "words"])
def test_an_address_without_a_cluster_is_refused_at_once(record, address):
    with pytest.raises(NMTError, match=f"ray.address={address}: no Ray cluster answers"):
        address_to_use(address)


def test_a_cluster_of_this_user_is_used(record, port, capsys):
    record.write_text(f"127.0.0.1:{port}\n")
    assert address_to_use(None) is None
    assert capsys.readouterr().err == ""


def test_a_dead_cluster_is_not_used(record, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    record.write_text(address)
    assert address_to_use(None) == NEW
    message = capsys.readouterr().err
    assert f"no Ray cluster answers at {address}" in message
    assert message.count("\n") == 1


def test_a_cluster_of_another_user_is_not_used(record, port, capsys, monkeypatch):
    record.write_text(f"127.0.0.1:{port}")
    other = os.getuid() + 1
    monkeypatch.setattr(connection.os, "getuid", lambda: other)
    assert address_to_use(None) == NEW
    message = capsys.readouterr().err
    assert f"ray.address=127.0.0.1:{port}" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Worker exit detail: Worker unexpectedly exits with a connection error", "killed"),
        ("The actor 80 is\nunavailable: RpcError", "no longer answers"),
        ("Task was killed due to the node running low on memory.\n Memory", "short of memory"),
        ("The node\nis gone", "The node is gone"),
    ],
)
def test_the_cause_of_a_death_is_one_line(text, cause):
    words = cause_of_death(RuntimeError(text))
    assert cause in words
    assert "\n" not in words
