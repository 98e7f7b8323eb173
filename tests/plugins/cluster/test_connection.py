"""Which Ray cluster a job uses."""

import os
import socket
import time
from pathlib import Path

import pytest

from nmt.errors import NMTError
from nmt.plugins.cluster import connection
from nmt.plugins.cluster.connection import (
    NEW,
    ClusterGone,
    Head,
    address_to_use,
    cause_of_death,
)
from nmt.plugins.cluster.options import RayConfig
from nmt.plugins.cluster.pool import too_small

DIED = (
    "The actor died unexpectedly before finishing this task.\n\tclass_name: \n"
    "\tactor_id: e2c4a92a38ff021ab7e6d42d02000000\n\tpid: 7\n\tip: 10.0.0.1\n"
)
"""What Ray says in any case."""


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
        ("The actor is dead because its owner has died. Its exit code: 1", "machine of this job"),
        ("The node\nis gone", "The node is gone"),
        (f"{DIED}The actor died because its node has died. Node Id: 5", "its machine is gone"),
        (f"{DIED}Some\nother cause", "Some other cause"),
        (DIED, "its process ended"),
    ],
)
def test_the_cause_of_a_death_is_one_line(text, cause):
    words = cause_of_death(RuntimeError(text))
    assert cause in words
    assert "\n" not in words


def test_a_head_that_does_not_answer_is_gone_after_a_while(monkeypatch):
    monkeypatch.setattr(connection, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(connection, "GONE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = Head(f"127.0.0.1:{server.getsockname()[1]}")
        assert head.answers()
    assert not head.answers()
    time.sleep(0.2)
    with pytest.raises(ClusterGone, match=r"127\.0\.0\.1:\d+ is gone: .*repeat the command"):
        head.answers()


@pytest.mark.parametrize(
    ("cpus", "gpus", "nodes", "words"),
    [
        (1, 1, [{"CPU": 4}], "no machine of the cluster has a GPU; nmt waits"),
        (8, 0, [{"CPU": 4}, {"CPU": 2}], "has 8 CPUs;"),
        (8, 1, [{"CPU": 4, "GPU": 1}], "has 8 CPUs and a GPU;"),
        (1, 0, [{"memory": 1}], "has a CPU;"),
    ],
)
def test_a_cluster_without_what_a_worker_needs_is_named(cpus, gpus, nodes, words):
    assert words in too_small(nodes, RayConfig(cpus=cpus, gpus=gpus))
