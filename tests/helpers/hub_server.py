"""A local server that speaks the part of the Hugging Face Hub's protocol that downloads need."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

API = re.compile(r"/api/models/(?P<repository>[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?")
FILE = re.compile(r"/(?P<repository>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")
WEIGHTS = (".safetensors", ".bin")
RANGE = re.compile(r"bytes=(\d+)-")


@dataclass
class FakeHub:
    """Repositories of models, and the requests that were made."""

    url: str = ""
    commits: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    """Repository -> commit -> file name -> content."""
    branches: dict[tuple[str, str], str] = field(default_factory=dict)
    """(Repository, branch or tag) -> commit."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Repository -> a wrong size to state for each of its files."""
    token: str | None = None
    """The token that files require; None: none."""
    is_cut: bool = False
    """Whether connections break in the middle of weights, and no later one sends more of them."""
    damage: Callable[[bytes], bytes] | None = None
    """What the server makes of the weights that it sends."""
    requests: list[str] = field(default_factory=list)

    def add(self, repository: str, folder: Path, branch: str = "main") -> str:
        """Add the files of a folder as a commit at the end of a branch, and return its hash."""
        content = {path.name: path.read_bytes() for path in folder.iterdir()}
        seed = repr([repository, branch, sorted(content.items())])
        commit = hashlib.sha1(seed.encode()).hexdigest()
        self.commits.setdefault(repository, {})[commit] = content
        self.branches[repository, branch] = commit
        return commit

    def commit_of(self, repository: str, revision: str) -> str | None:
        if revision in self.commits[repository]:
            return revision
        return self.branches.get((repository, revision))

    def names_requested(self) -> list[str]:
        """The files whose content was requested, in order."""
        gets = [request.removeprefix("GET ") for request in self.requests]
        return [match["name"] for match in map(FILE.fullmatch, gets) if match]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(f"{self.command} {path}")
        match = API.fullmatch(path) or FILE.fullmatch(path)
        # The library also asks for other things, such as names of programs that use it.
        if match is None:
            self.refuse(404, None, "Not found")
            return
        repository = match["repository"]
        if repository not in self.hub.commits:
            # As the hub answers to those who are not logged in.
            self.refuse(401, None, "Invalid username or password.")
            return
        revision = unquote(match["revision"] or "main")
        commit = self.hub.commit_of(repository, revision)
        if commit is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        files = self.hub.commits[repository][commit]
        if match.re is API:
            self.send_list(repository, commit, files)
        else:
            self.send_file(match["name"], commit, files)

    def refuse(self, status: int, code: str | None, message: str) -> None:
        headers = {"X-Error-Message": message}
        if code:
            headers["X-Error-Code"] = code
        self.send(status, headers, b"")

    def send_list(self, repository: str, commit: str, files: dict[str, bytes]) -> None:
        siblings = []
        for name, content in files.items():
            size = self.hub.sizes.get(repository, len(content))
            sibling: dict[str, Any] = {"rfilename": name, "size": size}
            if name.endswith(WEIGHTS):
                digest = hashlib.sha256(content).hexdigest()
                sibling["lfs"] = {"sha256": digest, "size": size, "pointerSize": 130}
            siblings.append(sibling)
        tree = {"id": repository, "modelId": repository, "sha": commit, "siblings": siblings}
        content = json.dumps(tree).encode()
        self.send(200, {"Content-Type": "application/json"}, content)

    def send_file(self, name: str, commit: str, files: dict[str, bytes]) -> None:
        if self.hub.token and self.headers["Authorization"] != f"Bearer {self.hub.token}":
            self.refuse(403, "GatedRepo", "Access to this model is restricted.")
            return
        if name not in files:
            self.refuse(404, "EntryNotFound", "Entry not found")
            return
        content = files[name]
        is_weights = name.endswith(WEIGHTS)
        if self.hub.damage and is_weights:
            content = self.hub.damage(content)
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit}
        match = RANGE.match(self.headers["Range"] or "")
        start = int(match[1]) if match else 0
        status = 206 if start else 200
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.hub.is_cut and is_weights and self.command == "GET":
            self.break_off(status, headers, content[start:], half=start == 0)
        else:
            self.send(status, headers, content[start:])

    def send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def break_off(self, status: int, headers: dict[str, str], content: bytes, half: bool) -> None:
        """Send half of the content or nothing of it, and close the connection."""
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if half:
            self.wfile.write(content[: len(content) // 2])
        self.close_connection = True


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A server without repositories, for HF_ENDPOINT."""
    hub = FakeHub()
    handler = type("HandlerOfHub", (Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # Python waits for these threads at the end, even if a client keeps its connection open.
        server.daemon_threads = True
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
