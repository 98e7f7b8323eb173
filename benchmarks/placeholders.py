"""Measure how well translations keep placeholders, on messages from a Django wheel with their German translations.

python benchmarks/placeholders.py django-*.whl FOLDER         # writes FOLDER/entries.en and FOLDER/entries.de
python benchmarks/placeholders.py entries.jsonl entries.de    # entries.jsonl: from `nmt translate format=jsonl`

chrF is computed without the items on either side, because they would raise it.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polib

from nmt.evaluation import score
from nmt.items.finder import Finder
from nmt.items.items import Items
from nmt.text import Pair

PLACEHOLDER = re.compile(r"%\(\w+\)|%[sd]|\{\w*\}|https?:|`|</?[a-z]")


def messages(wheel: Path) -> Iterator[Pair]:
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if re.search(r"/locale/de/LC_MESSAGES/.*\.po$", name):
                for entry in polib.pofile(files.read(name).decode()):
                    yield (
                        entry.msgid,
                        entry.msgstr_plural[0] if entry.msgid_plural else entry.msgstr,
                    )
                    if entry.msgid_plural:
                        yield entry.msgid_plural, entry.msgstr_plural[1]


def write_entries(wheel: Path, folder: Path) -> None:
    lines = (
        [" ".join(side.split()) for side in pair]
        for pair in messages(wheel)
        if PLACEHOLDER.search(pair[0])
    )
    pairs = sorted({source: target for source, target in lines if target}.items())
    for side, language in enumerate(("en", "de")):
        (folder / f"entries.{language}").write_text(
            "".join(pair[side] + "\n" for pair in pairs), encoding="utf-8"
        )


def report(file: Path, references: list[str]) -> str:
    arrived = flagged = 0
    around: list[Pair] = []
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for record, reference in zip(records, references, strict=True):
        source, best = record["source"], record["translations"][0]
        if stretches := Finder(["usual"]).stretches(source):
            items = Items(source, stretches)
            arrived += items.arrive(best["text"])
            flagged += "protected" in best["flags"]
            around.append((items.without(best["text"]), items.without(reference)))
    [chrf] = score([ours for ours, _ in around], [theirs for _, theirs in around], ["chrf"])
    share = (
        f"{arrived} of {len(around)} hold all exactly once ({arrived / max(len(around), 1):.1%})"
    )
    return f"{share}, {flagged} are flagged; around them chrF {chrf.value:.1f} ({chrf.signature})"


if __name__ == "__main__":
    first, second = map(Path, sys.argv[1:])
    if first.suffix == ".jsonl":
        print(report(first, second.read_text(encoding="utf-8").splitlines()))
    else:
        write_entries(first, second)
