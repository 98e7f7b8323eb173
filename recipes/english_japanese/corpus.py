"""Parallel text from Debian's translated package descriptions: corpus.py LANGUAGE FOLDER.

Writes FOLDER/{train,valid,test}.{en,LANGUAGE}. Descriptions of related packages stay in one split.
Format: https://wiki.debian.org/DebianRepository/Format, "Translation indices".
"""

import bz2
import hashlib
import lzma
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.text import joined

SUITE = "https://deb.debian.org/debian/dists/bookworm/main/i18n"
FIELD = re.compile(r"(Package|Description-md5|Description-[\w]+): ?(.*(?:\n .*)*)")
SHARES = {"test": 4, "valid": 2}
"""Percentages of the package families; the rest is for training."""


class Description(NamedTuple):
    """A package's description in one language."""

    package: str
    text: str


def descriptions(language: str) -> dict[str, Description]:
    """The descriptions in a language; keys are digests of the English text, equal in all languages."""
    is_original = language == "en"
    name = f"Translation-{language}.{'xz' if is_original else 'bz2'}"
    with urllib.request.urlopen(f"{SUITE}/{name}", timeout=60) as response:
        packed = response.read()
    index = (lzma.decompress(packed) if is_original else bz2.decompress(packed)).decode()
    found = dict[str, Description]()
    for stanza in index.split("\n\n"):
        fields = dict(FIELD.findall(stanza))
        text = fields.get(f"Description-{language}")
        if text:
            found[fields["Description-md5"]] = Description(fields["Package"], text)
    return found


def paragraphs(text: str) -> list[str]:
    """The title and the paragraphs of a description.

    A line with a dot separates paragraphs. An indented line, such as a list item, is a paragraph.
    """
    title, *lines = text.split("\n")
    result = [title]
    paragraph = list[str]()
    for line in [*(line[1:] for line in lines), "."]:
        is_apart = line == "." or line.startswith((" ", "\t"))
        if is_apart and paragraph:
            result.append(joined(paragraph))
            paragraph = []
        if not is_apart:
            paragraph.append(line.strip())
        elif line.strip() != ".":
            result.append(line.strip())
    return result


def split_of(package: str) -> str:
    """The split for a package: the same for all packages whose names begin with the same word."""
    family = re.split(r"[-.0-9+]", package.removeprefix("lib"))[0] or package
    percent = int(hashlib.sha256(family.encode()).hexdigest(), 16) % 100
    for split, share in SHARES.items():
        if percent < share:
            return split
        percent -= share
    return "train"


def pairs(language: str) -> Iterator[tuple[str, str, str]]:
    """Each paragraph in English and in the other language, with its split; no pair twice."""
    english = descriptions("en")
    seen = set[tuple[str, str]]()
    for digest, translated in descriptions(language).items():
        if digest not in english:
            continue
        sources = paragraphs(english[digest].text)
        targets = paragraphs(translated.text)
        if len(sources) != len(targets):
            continue
        for pair in zip(sources, targets, strict=True):
            if all(pair) and pair[0] != pair[1] and pair not in seen:
                seen.add(pair)
                yield split_of(translated.package), *pair


def main(language: str, folder: Path) -> None:
    lines: dict[str, tuple[list[str], list[str]]]
    lines = {split: ([], []) for split in ("train", "valid", "test")}
    for split, source, target in pairs(language):
        lines[split][0].append(source)
        lines[split][1].append(target)
    folder.mkdir(parents=True, exist_ok=True)
    for split, sides in lines.items():
        for name, texts in zip(("en", language), sides, strict=True):
            text = "".join(f"{text}\n" for text in texts)
            (folder / f"{split}.{name}").write_text(text, encoding="utf-8")
        print(f"{split}: {len(sides[0]):,} pairs")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
