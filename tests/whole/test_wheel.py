"""The wheel, installed by pip, pipx and uv as a stranger does, in an empty folder.

It carries everything that `nmt demo` needs. Afterwards, nothing needs a network.
"""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UPDATES = 6
RUN = f"runs/quickstart-{UPDATES}-updates"
OFFLINE = {
    "UV_OFFLINE": "1",
    "PIP_NO_INDEX": "1",
    "HF_HUB_OFFLINE": "1",
    # The port of the protocol "discard", where nothing listens.
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}
"""Variables that cut a program off from the network."""


def run(command: list[str], folder: Path, **variables: str) -> str:
    """The output of a command; the test fails with its last lines if the command does."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", **variables}
    # The package under test is the wheel, not this clone.
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installers(tmp_path_factory) -> Path:
    """The programs uv, uvx and pipx."""
    folder = tmp_path_factory.mktemp("installers")
    run([sys.executable, "-m", "venv", str(folder)], folder)
    run([str(folder / "bin/python"), "-m", "pip", "install", "-q", "uv", "pipx"], folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel in the folder $NMT_DIST, such as the one of a release, or else a new one."""
    given = os.environ.get("NMT_DIST")
    if given:
        [path] = (ROOT / given).glob("*.whl")
        return path
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    run(pip, folder)
    [path] = folder.glob("*.whl")
    return path


def installed(installer: str, wheel: Path, installers: Path, folder: Path) -> list[str]:
    """The words that start nmt after an installation by one line."""
    if installer == "uvx":
        return [str(installers / "uvx"), "--from", str(wheel), "nmt-toolkit"]
    if installer == "pipx":
        run([str(installers / "pipx"), "install", str(wheel)], folder)
        return [str(folder / "pipx-bin/nmt")]
    run([sys.executable, "-m", "venv", "venv"], folder)
    run(["venv/bin/python", "-m", "pip", "install", "-q", str(wheel)], folder)
    return [str(folder / "venv/bin/nmt")]


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", "pipx", "uvx"])
def test_one_line_installs_a_whole_translator(installer, wheel, installers, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIPX_BIN_DIR", str(tmp_path / "pipx-bin"))
    # uv reads its own variable instead of pip's.
    monkeypatch.setenv("UV_FIND_LINKS", os.environ.get("PIP_FIND_LINKS", ""))
    nmt = installed(installer, wheel, installers, tmp_path)
    folder = tmp_path / "empty"
    folder.mkdir()
    printed = run([*nmt, "demo", f"max_steps={UPDATES}"], folder)
    assert "BLEU = " in printed
    program = "uvx .*nmt-toolkit" if installer == "uvx" else re.escape(nmt[-1])
    assert re.search(f"{program} serve {RUN} --open", printed)
    offline = {**OFFLINE, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    again = run([*nmt, "demo", f"max_steps={UPDATES}"], folder, **offline)
    assert "BLEU = " in again
    run([*nmt, "translate", "Turn off the light.", RUN], folder, **offline)
    check_server([*nmt, "serve", RUN], folder, offline)


def check_server(command: list[str], folder: Path, variables: dict[str, str]) -> None:
    """Start a server and wait until it reports that it is healthy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, **variables}
    server = subprocess.Popen([*command, f"port={port}"], cwd=folder, env=environment)
    try:
        for _ in range(120):
            time.sleep(0.5)
            assert server.poll() is None, "the server stopped"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
                    assert answer.status == 200
                return
            except OSError:
                continue
        pytest.fail("the server did not answer")
    finally:
        server.terminate()
        server.wait()
