"""Parallel text from Debian's packages of LibreOffice: catalogs.py FOLDER LANGUAGE...

    python benchmarks/catalogs.py catalogs ja zh_CN ko th ar fa hi ru uk el he ka

Writes FOLDER/libreoffice.LANGUAGE.en and FOLDER/libreoffice.LANGUAGE: user interface strings in
English and their translations, in random order, without marks of access keys. Needs apt-get and
dpkg, but not root.
"""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import polib

ACCESS_KEY = re.compile(r"\([_~]?[A-Z0-9]\)|[~_](?=\w)")
CONTEXT = re.compile(r"[a-z_]+\|")


def strings(language: str) -> Iterator[tuple[str, str]]:
    """The strings of a language's package and their translations."""
    package = f"libreoffice-l10n-{language.lower().replace('_', '-')}"
    with TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        for file in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", file, folder], check=True)
        for catalog in sorted(Path(folder).rglob("*.mo")):
            for entry in polib.mofile(str(catalog)):
                yield CONTEXT.sub("", entry.msgid, count=1), entry.msgstr


def cleaned(text: str) -> str:
    return " ".join(ACCESS_KEY.sub("", text).split())


def main(folder: Path, languages: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for language in languages:
        pairs = {(cleaned(source), cleaned(target)) for source, target in strings(language)}
        kept = sorted(pair for pair in pairs if all(pair) and pair[0] != pair[1])
        random.Random(1).shuffle(kept)
        for side, suffix in enumerate(("en", "")):
            name = ".".join(filter(None, ("libreoffice", language, suffix)))
            lines = "".join(f"{pair[side]}\n" for pair in kept)
            (folder / name).write_text(lines, encoding="utf-8")
        print(f"{language}: {len(kept):,} pairs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
