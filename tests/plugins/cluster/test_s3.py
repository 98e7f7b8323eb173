"""Bulk translation on Ray of files on an S3 server, which is slow at times."""

import gzip
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WORDS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
SERVER = Path(__file__).with_name("s3_server.py")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "secret"}
COPY = "import fsspec, sys; fsspec.filesystem('s3').{}(sys.argv[1], sys.argv[2], recursive=True)"
LIST = "import fsspec, sys; print(*fsspec.filesystem('s3').find(sys.argv[1]), sep='\\n')"
SIZES = ["ray.lines=50", "ray.workers=2"]
MAKE = "import fsspec, sys; fsspec.filesystem('s3').mkdir(sys.argv[1])"


class Bucket:
    """A bucket of a server, and a program that reads and writes it."""

    def __init__(self, python: str, model: Path, environment: dict[str, str]) -> None:
        self.python = python
        self.model = model
        self.environment = environment

    def run(self, program: str, *words: str) -> str:
        command = [self.python, "-c", program, *words]
        outcome = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return outcome.stdout

    def put(self, source: str, name: str) -> None:
        self.run(COPY.format("put"), source, name)

    def start(self, *words: str, **variables: str) -> "subprocess.Popen[str]":
        """Start a job."""
        options = [f"run={self.model}", "engine=ctranslate2", "cluster=ray", *SIZES]
        return subprocess.Popen(
            [self.python, "-m", "nmt", "translate", *options, *words],
            env={**self.environment, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def refusal(self, *words: str, **variables: str) -> str:
        """The message of a job that must fail; it is one line."""
        job = self.start(*words, **variables)
        output, message = job.communicate(timeout=300)
        assert job.returncode != 0
        assert output == ""
        assert message.count("\n") == 1, message
        return message


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture
def bucket(python, word_model, here, ray_folder) -> Iterator[Bucket]:
    """A bucket whose server refuses every seventh request for the moment."""
    port = free_port()
    server = subprocess.Popen([python, SERVER, str(port), "7"], stderr=subprocess.DEVNULL)
    environment: dict[str, Any] = {
        **os.environ,
        **CREDENTIALS,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(ROOT),
        "RAY_TMPDIR": ray_folder,
    }
    place = Bucket(python, word_model, environment)
    try:
        wait_for(port)
        place.run(MAKE, "bucket")
        yield place
    finally:
        server.kill()
        server.wait()


def wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server does not start")


def write_inputs(folder: Path) -> None:
    generator = random.Random(1)
    lines = [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) for _ in range(3000)]
    (folder / "deep").mkdir(parents=True)
    text = "".join(f"{line}\n" for line in lines)
    (folder / "a.txt").write_text(text)
    (folder / "deep/b.txt.gz").write_bytes(gzip.compress(text.encode()[:20_000]))
    rows = [json.dumps({"id": number, "text": line}) for number, line in enumerate(lines[:500])]
    (folder / "c.jsonl").write_text("".join(f"{row}\n" for row in rows))


def test_a_killed_job_on_a_slow_server_resumes(bucket, here):
    write_inputs(here / "in")
    bucket.put("in/", "bucket/in/")
    words = ["input=s3://bucket/in/", "output=s3://bucket/out/"]
    job = bucket.start(*words)
    while bucket.run(LIST, "bucket/out.blocks").count("/blocks/") < 20:
        assert job.poll() is None, job.communicate()
    job.send_signal(signal.SIGKILL)
    job.communicate()
    job = bucket.start(*words)
    output, messages = job.communicate(timeout=300)
    assert job.returncode == 0, messages
    assert output == ""
    kept = int(messages.partition(" lines from earlier")[0].split()[-1].replace(",", ""))
    assert kept >= 500
    bucket.run(COPY.format("get"), "bucket/out/", "remote/")
    local = bucket.start("input=in", "output=local")
    assert local.communicate(timeout=300)[0] == ""
    for name in ("a.txt", "deep/b.txt.gz", "c.jsonl"):
        assert Path("remote", name).read_bytes() == Path("local", name).read_bytes()
    # An object that has been replaced since then is not mixed with the old translations.
    Path("in/a.txt").write_text("ka lo\n")
    bucket.put("in/a.txt", "bucket/in/a.txt")
    assert "a.txt: has changed since" in bucket.refusal(*words)


def test_a_missing_bucket_or_credential_is_one_line(bucket, here):
    (here / "a.txt").write_text("ka lo\n")
    bucket.put("a.txt", "bucket/a.txt")
    words = ["input=s3://bucket/a.txt", "output=s3://other/a.txt"]
    assert "cannot write s3://other/a.txt" in bucket.refusal(*words)
    assert bucket.run(LIST, "bucket").split() == ["bucket/a.txt"]
    message = bucket.refusal("input=s3://bucket/a.txt", "output=b.txt", AWS_ACCESS_KEY_ID="")
    assert "s3://bucket/a.txt: " in message
    assert "credentials" in message
