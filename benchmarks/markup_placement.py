"""Measure whether elements in translations lie around the right words.

python benchmarks/markup_placement.py MODEL SOURCE TARGET [WORDS] [KEY=VALUE ...]

In up to 100 sentence pairs, the script puts one word of the source into an element: a name that the
target has too or, with a table WORDS (a source word, a tab, its translation), a word of the table.
It translates the sentences as HTML and prints the share of elements with exactly that name or
translation, of the sentences whose translation has it once. It also counts elements that are empty,
or that begin or end within a word. Other arguments are passed to `nmt translate`.
"""

import random
import re
import subprocess
import sys
from collections import Counter
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from nmt.text import is_word_border

MOST = 100
NAME = re.compile(r"(?<![\w.-])(?=[\w.-]*[A-Z\d])[A-Za-z\d][\w.-]*[A-Za-z\d](?![\w.-])", re.ASCII)
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
ELEMENT = re.compile(r"(.*?)<b>(.*?)</b>(.*)", re.DOTALL)


class Case(NamedTuple):
    source: str
    word: str
    expected: str


def whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", re.ASCII)


def cases(sources: list[str], targets: list[str], table: list[tuple[str, str]]) -> list[Case]:
    """The sentences with one word to mark; each word occurs once in its sentence."""
    draw = random.Random(1)
    result = list[Case]()
    for source, target in zip(sources, targets, strict=True):
        words = table or [(name, name) for name in NAME.findall(source)]
        usable = [
            Case(source, word, translation)
            for word, translation in words
            if len(whole(word).findall(source)) == target.count(translation) == 1
        ]
        if usable:
            result.append(draw.choice(usable))
    draw.shuffle(result)
    return result[:MOST]


def marked(case: Case) -> str:
    found = whole(case.word).search(case.source)
    assert found
    begin, end = found.span()
    parts = case.source[:begin], case.source[begin:end], case.source[end:]
    before, word, after = (escape(part, quote=False) for part in parts)
    return f"<p>{before}<b>{word}</b>{after}</p>"


def verdicts(case: Case, translation: str) -> list[str]:
    """What is to count about one translation."""
    text = unescape(re.sub("</?b>", "", translation))
    element = ELEMENT.fullmatch(translation)
    if not element:
        return ["lost"]
    before, inside, _ = map(unescape, element.groups())
    result = []
    if not inside.strip():
        result.append("empty")
    borders = len(before), len(before + inside)
    if not all(is_word_border(text, border) for border in borders):
        result.append("within a word")
    if text.count(case.expected) == 1:
        result.append("right" if inside.strip() == case.expected else "wrong")
    return result


def main(model: str, source: str, target: str, *more: str) -> None:
    table = list[tuple[str, str]]()
    overrides = list(more)
    if overrides and "=" not in overrides[0]:
        rows = Path(overrides.pop(0)).read_text().splitlines()
        table = [(word, translation) for word, translation in (row.split("\t") for row in rows)]
    texts = [Path(name).read_text().splitlines() for name in (source, target)]
    chosen = cases(*texts, table)
    page = "\n".join(map(marked, chosen))
    command = ["nmt", "translate", model, "format=html", *overrides]
    run = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    translations = PARAGRAPH.findall(run.stdout)
    counts = Counter[str]()
    for case, translation in zip(chosen, translations, strict=True):
        result = verdicts(case, translation)
        counts.update(result)
        if result != ["right"]:
            print(f"{', '.join(result)}: {marked(case)} -> {translation} ({case.expected})")
    judged = counts["right"] + counts["wrong"]
    print(f"right: {counts['right']} of {judged} ({counts['right'] / max(judged, 1):.0%})")
    for kind in ("empty", "within a word", "lost"):
        print(f"{kind}: {counts[kind]} of {len(chosen)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
