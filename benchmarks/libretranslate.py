"""Run LibreTranslate's own tests of its HTTP API against `nmt serve`.

    git clone https://github.com/LibreTranslate/LibreTranslate
    python benchmarks/libretranslate.py LibreTranslate MODEL

MODEL is a model directory or a run. The tests translate from English to Spanish and check the form
of the answers, not the text, so the script serves a copy of the model that claims to translate
from `en` to `es`. Each test gets a client that sends its requests to this server; LibreTranslate
itself need not be installed. The exit code is pytest's.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from serve import begin_server, threading_drain

from nmt.files import find_model_directory

TESTS = Path("libretranslate", "tests", "test_api")


class Response:
    """An answer, with the attributes of those of Flask's test client."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status_code = answer.status_code
        self.data = answer.content

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Client:
    """Flask's test client, as far as the tests use it, for a server on this machine."""

    def __init__(self, port: int) -> None:
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def get(self, path: str, **options: Any) -> Response:
        return Response(self.http.get(path, **options))

    def post(self, path: str, **options: Any) -> Response:
        return Response(self.http.post(path, **options))


class ClientPlugin:
    """The fixture `client`, instead of the one in LibreTranslate's conftest.py."""

    def __init__(self, port: int) -> None:
        self.port = port

    @pytest.fixture
    def client(self) -> Client:
        return Client(self.port)


def copy_as_spanish(model: str, folder: Path) -> None:
    """Copy a model directory, and change its languages to English and Spanish."""
    shutil.copytree(find_model_directory(model), folder)
    config = folder / "config.json"
    description = json.loads(config.read_text(encoding="utf-8"))
    description |= {"source": "en", "target": "es"}
    config.write_text(json.dumps(description, indent=2), encoding="utf-8")


def main(clone: str, model: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_as_spanish(model, folder / "model")
        shutil.copytree(
            Path(clone) / TESTS, folder / "tests", ignore=shutil.ignore_patterns("conftest.py")
        )
        server, port = begin_server(str(folder / "model"), [])
        threading_drain(server)
        try:
            options = ["-q", "-p", "no:cacheprovider", "--rootdir", name, "-c", "/dev/null"]
            return pytest.main([*options, str(folder / "tests")], plugins=[ClientPlugin(port)])
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
