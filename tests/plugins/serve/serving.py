"""A running `nmt serve`, and requests to it."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import httpx

from nmt.commands import compose
from nmt.translation import load_translator

PATIENCE = 60.0  # seconds
LINES = ["va so tu pe mika.", "mika nu nu pe.", "", "756 mivari tu so rilova ri.", "  pelowe.  "]


class Server:
    """The process of a server, and its log."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.file = log
        self.url = self.logged(r"at (http://\S+)")[1].replace("0.0.0.0", "127.0.0.1")
        self.port = int(self.url.rpartition(":")[2])

    @property
    def log(self) -> list[str]:
        return self.file.read_text().splitlines()

    def logged(self, pattern: str) -> re.Match[str]:
        """Wait for a match in the log."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.file.read_text())):
            assert time.monotonic() < deadline, self.log
            assert self.process.poll() is None, self.log
            time.sleep(0.02)
        return match

    def ask(self, path: str, fields: Any = None, **headers: str) -> tuple[int, Any]:
        """Send fields as JSON, or bytes as a form; returns the status and content of the answer."""
        content = fields
        kind = "application/json"
        if isinstance(fields, bytes):
            kind = "application/x-www-form-urlencoded"
        elif fields is not None:
            content = json.dumps(fields)
        all_headers = {"Content-Type": kind}
        for name, value in headers.items():
            all_headers[name.replace("_", "-")] = value
        answer = httpx.request(
            "GET" if fields is None else "POST",
            self.url + path,
            content=content,
            headers=all_headers,
            timeout=PATIENCE,
        )
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status_code, answer.json() if is_json else answer.text

    def translate(self, q: Any, **fields: Any) -> tuple[int, Any]:
        return self.ask("/translate", {"q": q, "source": "en", "target": "de", **fields})

    def translate_from(self, origin: str) -> tuple[int, Any]:
        """Translate for a page of a site."""
        fields = {"q": "tu", "source": "en", "target": "de"}
        return self.ask("/translate", fields, Origin=origin)

    def translated(self, q: Any, **fields: Any) -> Any:
        status, answer = self.translate(q, **fields)
        assert status == 200, answer
        return answer["translatedText"]


def as_pairs(model: Path, folder: Path, *pairs: str) -> list[Path]:
    """Copies of a model under other languages, each given as SOURCE>TARGET."""
    copies = list[Path]()
    for pair in pairs:
        source, target = pair.split(">")
        copy = shutil.copytree(model, folder / f"{source}-{target}")
        description = json.loads((copy / "config.json").read_text())
        description |= {"source": source, "target": target}
        (copy / "config.json").write_text(json.dumps(description))
        copies.append(copy)
    return copies


def by_command(model: Path, lines: list[str], *words: str) -> list[str]:
    """The translations of `nmt translate`."""
    config = compose("translate", [f"run={model}", "engine=ctranslate2", *words])
    translator = load_translator(config.translator, lambda notice: None)
    return [row[0].text for row in translator.translate(lines)]


def upload(
    server: Server,
    name: str,
    content: bytes,
    source: str = "en",
    prefix: str = "",
    format: str = "",
) -> tuple[int, Any]:
    """Send a file; returns the status and the answer."""
    answer = httpx.post(
        f"{server.url}/translate_file",
        data={"source": source, "target": "de", "format": format},
        files={"file": (name, content)},
        headers={"X-Forwarded-Prefix": prefix},
        timeout=PATIENCE,
    )
    return answer.status_code, answer.json()


def connect(server: Server, *parts: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    for part in parts:
        connection.sendall(part)
    return connection


@contextmanager
def serving(*words: str | Path) -> Iterator[Server]:
    """Start a server, on a free port by default."""
    port = [] if any(str(word).startswith("port=") for word in words) else ["port=0"]
    command = [sys.executable, "-m", "nmt", "serve", *port, *map(str, words)]
    with NamedTemporaryFile() as log:
        process = subprocess.Popen(command, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"})
        try:
            yield Server(process, Path(log.name))
        finally:
            process.kill()
            process.wait()
