"""An environment for the tests that take minutes, with Ray and an S3 server."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

PACKAGES = {"ray": "ray[data]>=2.40", "s3fs": "s3fs", "moto": "moto[s3,server]"}
"""Module -> what pip installs for it."""


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> str:
    """A Python with nmt, ray, s3fs and moto.

    If one is missing, they are installed in an environment beside nmt's, which takes minutes.
    """
    if all(find_spec(module) for module in PACKAGES):
        return sys.executable
    folder = tmp_path_factory.mktemp("ray") / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    # The packages of this environment, from which these are missing.
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "nmt.pth").write_text("".join(f"{path}\n" for path in paths))
    program = str(folder / "bin" / "python")
    subprocess.run([program, "-m", "pip", "install", "-q", *PACKAGES.values()], check=True)
    return program


@pytest.fixture
def ray_folder() -> Iterator[str]:
    """A folder for Ray's sessions, with a short name, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield name
