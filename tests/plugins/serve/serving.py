"""A running `nmt serve`, and requests to it."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import httpx

PATIENCE = 60.0  # seconds


class Server:
    """The process of a server, and its log."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process, self.file = process, log
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
        """Send fields as JSON, or bytes as a form; returns the status and the content of the answer."""
        kind = (
            "application/x-www-form-urlencoded" if isinstance(fields, bytes) else "application/json"
        )
        body = fields if fields is None or isinstance(fields, bytes) else json.dumps(fields)
        names = {"Content-Type": kind} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        method = "GET" if fields is None else "POST"
        answer = httpx.request(
            method, self.url + path, content=body, headers=names, timeout=PATIENCE
        )
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status_code, answer.json() if is_json else answer.text

    def translate(self, q: Any, **fields: Any) -> tuple[int, Any]:
        return self.ask("/translate", {"q": q, "source": "en", "target": "de", **fields})

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
        description = json.loads((copy / "config.json").read_text()) | {
            "source": source,
            "target": target,
        }
        (copy / "config.json").write_text(json.dumps(description))
        copies.append(copy)
    return copies


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
