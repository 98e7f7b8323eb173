"""The clients on the page about the server, run as users would run them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.plugins.serve.serving import Server, serving

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "serve.md"
TEXTS = ["Open the file.", "Close it."]
KEY = "secret"


@pytest.fixture(scope="module")
def guarded(word_model, tmp_path_factory) -> Iterator[Server]:
    """A server with a key."""
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text(f"ann {sha256(KEY.encode()).hexdigest()}\n")
    with serving(word_model, f"keys={keys}") as server:
        yield server


def client(language: str, server: Server) -> str:
    """The client on the page, for a server with a key."""
    section = PAGE.read_text().partition("### Call the API")[2].partition("\n### ")[0]
    [code] = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 5
    assert "http://127.0.0.1:5000" in code
    assert "Bearer KEY" in code
    return code.replace("http://127.0.0.1:5000", server.url).replace("Bearer KEY", f"Bearer {KEY}")


def printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def expected_from(server: Server) -> list[str]:
    fields = {"q": TEXTS, "source": "en", "target": "de", "api_key": KEY}
    status, answer = server.ask("/translate", fields)
    assert status == 200
    return answer["translatedText"]


def test_python(guarded):
    code = client("python", guarded)
    assert printed(sys.executable, "-c", code) == f"{expected_from(guarded)}\n"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_curl(guarded):
    answer = json.loads(printed("sh", "-c", client("sh", guarded)))
    assert answer == {"translatedText": expected_from(guarded)}


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js")
def test_javascript(guarded):
    # A list of strings without special characters is printed as JavaScript and JSON would write it.
    code = client("js", guarded).replace("console.log(", "console.log(JSON.stringify(")
    code = code.replace("answer.translatedText)", "answer.translatedText))")
    assert json.loads(printed("node", "-e", code)) == expected_from(guarded)
