"""The container's health check: the script as a process, against real servers and other processes."""

import importlib.util
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.plugins.serve.serving import serving

SCRIPT = Path(__file__).parents[3] / "deploy" / "health.py"
SLEEP = "import time; time.sleep(60)"


def check(process, **environment):
    return subprocess.run(
        [sys.executable, SCRIPT, str(process)], capture_output=True, text=True, env=environment
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def process_named(*words):
    """A process that does nothing, with these words in its command line."""
    process = subprocess.Popen([sys.executable, "-c", SLEEP, *words])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("/opt/nmt/bin/python3 /opt/nmt/bin/nmt serve /model", "http://127.0.0.1:5000"),
        ("/dev/init -- nmt serve /model host=0.0.0.0 port=80", "http://127.0.0.1:80"),
        ("python -m nmt serve port=1 port=2 host=::", "http://[::1]:2"),
        ("nmt serve host=10.1.2.3 hosts=[a.b]", "http://10.1.2.3:5000"),
        ("nmt-toolkit serve ++port=7 host='127.0.0.1'", "http://127.0.0.1:7"),
        ("nmt serve port=0", ""),
        ("nmt train data/serve name=serve", ""),
        ("nmt translate run=/model text=serve", ""),
        ("nmt", ""),
        ("bash", ""),
    ],
)
def test_the_address_follows_from_the_command_line(line, address):
    spec = importlib.util.spec_from_file_location("health", SCRIPT)
    health = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(health)
    assert health.server_address([*line.split(), ""]) == address


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="containers run Linux")
def test_only_a_server_that_does_not_answer_is_unhealthy(word_model):
    port = free_port()
    with serving(word_model, f"port={port}", "host=0.0.0.0", "anonymous=true") as server:
        # The proxy of a container's environment cannot reach its own server.
        answer = check(server.process.pid, http_proxy="http://127.0.0.1:9")
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    with process_named("nmt", "serve", f"port={port}") as process:
        answer = check(process)
        assert answer.returncode == 1
        [line] = answer.stderr.splitlines()
        assert line.startswith(f"http://127.0.0.1:{port}: ")
    with process_named("nmt", "train", f"port={port}") as process:
        assert check(process).returncode == 0
