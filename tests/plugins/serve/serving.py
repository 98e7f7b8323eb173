"""A running `nmt serve`, and requests to it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

PATIENCE = 60.0  # seconds


class Server:
    """The process of a server, and its log."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process, self.log = process, list[str]()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        try:
            self.url = self.logged(r"at (http://\S+)")[1].replace("0.0.0.0", "127.0.0.1")
        except AssertionError:
            process.kill()
            raise
        self.port = int(self.url.rpartition(":")[2])

    def read(self) -> None:
        assert self.process.stderr
        with self.process.stderr as log:
            self.log.extend(log)

    def logged(self, pattern: str, after: int = 0) -> re.Match[str]:
        """Wait for a match in the log."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if match := re.search(pattern, "".join(self.log[after:])):
                return match
            assert self.process.poll() is None or after, "".join(self.log)
            time.sleep(0.02)
        raise AssertionError(f"{pattern} is not in {''.join(self.log)}")

    def workers(self) -> list[int]:
        """The ids of all processes of models so far."""
        return [int(number) for number in re.findall(r"as process (\d+)", "".join(self.log))]

    def ask(self, path: str, fields: Any = None, **headers: str) -> tuple[int, Any]:
        """Send fields as JSON, or bytes as a form; returns the status and the content of the answer."""
        kind = "application/x-www-form-urlencoded" if isinstance(fields, bytes) else "application/json"
        body = fields if fields is None or isinstance(fields, bytes) else json.dumps(fields)
        names = {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
        method = "GET" if fields is None else "POST"
        answer = httpx.request(method, self.url + path, content=body, headers=names, timeout=PATIENCE)
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status_code, answer.json() if is_json else answer.text

    def translate(self, q: Any, **fields: Any) -> tuple[int, Any]:
        return self.ask("/translate", {"q": q, "source": "en", "target": "de", **fields})

    def translated(self, q: Any, **fields: Any) -> Any:
        status, answer = self.translate(q, **fields)
        assert status == 200, answer
        return answer["translatedText"]


@contextmanager
def serving(*words: str | Path) -> Iterator[Server]:
    """Start a server, on a free port by default."""
    port = [] if any(str(word).startswith("port=") for word in words) else ["port=0"]
    command = [sys.executable, "-m", "nmt", "serve", *port, *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    server = Server(process)
    try:
        yield server
    finally:
        process.kill()
        process.wait()
        for worker in server.workers():  # stopped processes do not notice that the server has ended
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        server.reader.join()
