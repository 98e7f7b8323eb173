"""A local server that speaks the parts of the Hugging Face Hub's protocol that nmt needs."""

import base64
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
TREE = re.compile(r"/api/models/(?P<repository>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)")
FILE = re.compile(r"/(?P<repository>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")
WRITE = re.compile(
    r"/api/models/(?P<repository>[^/]+/[^/]+)/(?P<action>preupload|commit|branch)/(?P<revision>[^/]+)"
)
BATCH = re.compile(r"/(?P<repository>[^/]+/[^/]+)\.git/info/lfs/objects/batch")
WEIGHTS = (".safetensors", ".bin", ".model")
RANGE = re.compile(r"bytes=(\d+)-")
MOST_ENDLESS = 2**28
"""The number of bytes after which an endless body ends, so that a test ends, too."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_sha1(content: bytes) -> str:
    """The name of a file's content in git."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entry_of(name: str, content: bytes) -> dict[str, Any]:
    """A file in the list of a whole commit."""
    size = len(content)
    entry = {"type": "file", "path": name, "size": size, "oid": git_sha1(content)}
    if name.endswith(WEIGHTS):
        entry["lfs"] = {"oid": sha256(content), "size": size, "pointerSize": 130}
    return entry


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
    """What the server makes of the files in `damaged` that it sends."""
    damaged: tuple[str, ...] = WEIGHTS
    """The ends of the names of these files."""
    is_endless: bool = False
    """Whether the server sends weights of no stated size until the client leaves."""
    sent: int = 0
    """The number of bytes sent of the last endless body."""
    users: dict[str, str] = field(default_factory=dict)
    """Token -> the namespace that its user may write to."""
    objects: dict[str, bytes] = field(default_factory=dict)
    """SHA-256 -> content of large files that were uploaded."""
    messages: list[str] = field(default_factory=list)
    """The message of each commit that was pushed."""
    private: set[str] = field(default_factory=set)
    """The repositories that were created as private ones."""
    requests: list[str] = field(default_factory=list)

    def add(self, repository: str, folder: Path, branch: str = "main") -> str:
        """Add the files of a folder as a commit at the end of a branch, and return its hash."""
        content = {}
        for path in folder.rglob("*"):
            if path.is_file():
                content[path.relative_to(folder).as_posix()] = path.read_bytes()
        return self.commit(repository, branch, content)

    def commit(self, repository: str, branch: str, content: dict[str, bytes]) -> str:
        """Add a commit with these files at the end of a branch, and return its hash."""
        number = len(self.messages)
        seed = repr([repository, branch, number, sorted(content.items())])
        commit = hashlib.sha1(seed.encode()).hexdigest()
        self.commits.setdefault(repository, {})[commit] = content
        self.branches[repository, branch] = commit
        return commit

    def commit_of(self, repository: str, revision: str) -> str | None:
        if revision in self.commits[repository]:
            return revision
        return self.branches.get((repository, revision))

    def head(self, repository: str, branch: str = "main") -> dict[str, bytes]:
        """The files of a branch."""
        return self.commits[repository][self.branches[repository, branch]]

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

    def do_PUT(self) -> None:
        content = self.body()
        self.hub.requests.append(f"PUT {self.path}")
        digest = self.path.rpartition("/")[2]
        assert hashlib.sha256(content).hexdigest() == digest
        self.hub.objects[digest] = content
        self.send(200, {}, b"")

    def do_POST(self) -> None:
        content = self.body()
        path = urlsplit(self.path).path
        self.hub.requests.append(f"POST {path}")
        if path == "/api/validate-yaml":
            self.send_json({"warnings": [], "errors": []})
        elif path == "/api/repos/create":
            self.create(json.loads(content))
        elif match := BATCH.fullmatch(path):
            self.send_actions(json.loads(content))
        elif match := WRITE.fullmatch(path):
            self.write(match["repository"], match["action"], unquote(match["revision"]), content)
        else:
            self.refuse(404, None, "Not found")

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"] or 0))

    def may_write(self, namespace: str) -> bool:
        """Whether the user may write; otherwise, the request is answered."""
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        if token not in self.hub.users:
            self.refuse(401, None, "Invalid username or password.")
            return False
        if self.hub.users[token] != namespace:
            self.refuse(403, None, f"You don't have the rights to write to {namespace}")
            return False
        return True

    def create(self, options: dict[str, Any]) -> None:
        namespace = options["organization"]
        repository = f"{namespace}/{options['name']}"
        if not self.may_write(namespace):
            return
        if repository in self.hub.commits:
            self.refuse(409, None, "You already created this model repo")
            return
        self.hub.commit(repository, "main", {".gitattributes": b"*.safetensors filter=lfs\n"})
        if options.get("private") or options.get("visibility") == "private":
            self.hub.private.add(repository)
        self.send_json({"url": f"{self.hub.url}/{repository}", "name": repository})

    def send_actions(self, batch: dict[str, Any]) -> None:
        """Say where to upload large files that the hub does not have yet."""
        objects = []
        for entry in batch["objects"]:
            if entry["oid"] not in self.hub.objects:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/upload/{entry['oid']}"}}
            objects.append(entry)
        self.send_json({"transfer": "basic", "objects": objects})

    def write(self, repository: str, action: str, revision: str, content: bytes) -> None:
        if not self.may_write(repository.partition("/")[0]):
            return
        if action == "branch":
            self.hub.branches[repository, revision] = self.hub.branches[repository, "main"]
            self.send_json({})
            return
        files = self.hub.head(repository, revision)
        if action == "preupload":
            entries = [self.mode_of(file, files) for file in json.loads(content)["files"]]
            self.send_json({"files": entries})
            return
        lines = [json.loads(line) for line in content.splitlines()]
        header = lines.pop(0)["value"]
        parent = header.get("parentCommit")
        if parent not in (None, self.hub.branches[repository, revision]):
            self.refuse(412, None, "A commit has happened since. Please refresh and try again.")
            return
        self.hub.messages.append(header["summary"])
        commit = self.hub.commit(repository, revision, self.changed(files, lines))
        url = f"{self.hub.url}/{repository}/commit/{commit}"
        self.send_json({"commitUrl": url, "commitOid": commit, "success": True})

    def mode_of(self, file: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
        path = file["path"]
        is_large = path.endswith(WEIGHTS)
        entry = {
            "path": path,
            "uploadMode": "lfs" if is_large else "regular",
            "shouldIgnore": False,
        }
        if path in files:
            entry["oid"] = sha256(files[path]) if is_large else git_sha1(files[path])
        return entry

    def changed(self, files: dict[str, bytes], lines: list[dict[str, Any]]) -> dict[str, bytes]:
        """The files after the operations of a commit."""
        files = dict(files)
        for line in lines:
            value = line["value"]
            path = value["path"]
            if line["key"] == "file":
                files[path] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[path] = self.hub.objects[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[path]
            else:
                assert line["key"] == "deletedFolder"
                kept = [name for name in files if not name.startswith(path)]
                files = {name: files[name] for name in kept}
        return files

    def answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(f"{self.command} {path}")
        match = API.fullmatch(path) or TREE.fullmatch(path) or FILE.fullmatch(path)
        # The library also asks for other things, such as names of programs that use it.
        if match is None:
            self.refuse(404, None, "Not found")
            return
        repository = match["repository"]
        if repository not in self.hub.commits:
            token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
            if token in self.hub.users:
                self.refuse(404, "RepoNotFound", "Repository not found")
            else:  # whoever is not logged in
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
        elif match.re is TREE:
            self.send_json([entry_of(name, content) for name, content in files.items()])
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
            sibling["blobId"] = git_sha1(content)
            if name.endswith(WEIGHTS):
                digest = sha256(content)
                sibling["lfs"] = {"sha256": digest, "size": size, "pointerSize": 130}
            siblings.append(sibling)
        tree = {
            "id": repository,
            "modelId": repository,
            "sha": commit,
            "siblings": siblings,
            "private": repository in self.hub.private,
        }
        self.send_json(tree)

    def send_json(self, tree: Any) -> None:
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
        if self.hub.damage and name.endswith(self.hub.damaged):
            content = self.hub.damage(content)
        headers = {"ETag": f'"{sha256(content)}"', "X-Repo-Commit": commit}
        match = RANGE.match(self.headers["Range"] or "")
        start = int(match[1]) if match else 0
        status = 206 if start else 200
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.hub.is_endless and is_weights and self.command == "GET":
            self.send_endless(headers)
        elif self.hub.is_cut and is_weights and self.command == "GET":
            self.break_off(status, headers, content[start:], half=start == 0)
        else:
            self.send(status, headers, content[start:])

    def send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_endless(self, headers: dict[str, str]) -> None:
        """Send zeros in chunks, without the size of the body."""
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.hub.sent = 0
        part = b"10000\r\n" + bytes(2**16) + b"\r\n"
        self.close_connection = True
        try:
            while self.hub.sent < MOST_ENDLESS:
                self.wfile.write(part)
                self.hub.sent += 2**16
        except OSError:  # the client has left
            return

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
