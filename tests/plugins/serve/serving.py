"""A running `nmt serve`, and requests to it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds; a shared machine is slow at times."""


class Server:
    """The process of a server, and what it has logged."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.log: list[str] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        try:
            self.url = self.logged(r"at (http://\S+)")[1]
        except AssertionError:
            process.kill()
            raise
        self.port = int(self.url.rpartition(":")[2])

    def read(self) -> None:
        assert self.process.stderr
        with self.process.stderr as log:
            self.log.extend(log)

    def logged(self, pattern: str, after: int = 0) -> re.Match[str]:
        """The first match in the log, which is waited for."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if found := re.search(pattern, "".join(self.log[after:])):
                return found
            assert self.process.poll() is None or after, "".join(self.log)
            time.sleep(0.02)
        raise AssertionError(f"{pattern} is not in {''.join(self.log)}")

    def workers(self) -> list[int]:
        """The processes of all models so far."""
        return [int(number) for number in re.findall(r"as process (\d+)", "".join(self.log))]

    def ask(self, path: str, fields: Any = None, **headers: str) -> tuple[int, Any]:
        """The status and the answer to a request; fields as JSON, bytes as they are."""
        body = fields if fields is None or isinstance(fields, bytes) else json.dumps(fields).encode()
        kind = {} if isinstance(fields, bytes) else {"Content-Type": "application/json"}
        request = urllib.request.Request(
            self.url + path, body, {**kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, read(answer)
        except urllib.error.HTTPError as error:
            return error.code, read(error)

    def translate(self, q: Any, **fields: Any) -> tuple[int, Any]:
        return self.ask("/translate", {"q": q, "source": "en", "target": "de", **fields})

    def translated(self, q: Any) -> Any:
        status, found = self.translate(q)
        assert status == 200, found
        return found["translatedText"]

    def end(self, signal_number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(PATIENCE)


def read(answer: Any) -> Any:
    content = answer.read().decode()
    return json.loads(content) if answer.headers.get_content_type() == "application/json" else content


@contextmanager
def serving(*words: str | Path, folder: Path | None = None) -> Iterator[Server]:
    """A server at a free port; by CTranslate2, which starts in half a second."""
    options = [] if any("engine=" in str(word) for word in words) else ["engine=ctranslate2"]
    port = [] if any(str(word).startswith("port=") for word in words) else ["port=0"]
    command = [sys.executable, "-m", "nmt", "serve", *port, *options, *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
    server = Server(process)
    try:
        yield server
    finally:
        process.kill()
        process.wait()
        for worker in server.workers():  # a stopped one would not notice
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        server.reader.join()
