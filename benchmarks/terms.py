"""Measure what a dictionary's terms do to a model's translations and speed.

    apt-get install dict-freedict-eng-deu
    OMP_NUM_THREADS=1 python benchmarks/terms.py MODEL SOURCE REFERENCE oracle|first

The script writes a glossary for the words of SOURCE to the folder of MODEL. oracle.tsv has the words for which every
line with the word has one of the dictionary's translations in its reference. first.tsv has the first translation of
each word, whether or not the reference has it. Both contain only single words of four letters or more. The script
translates without terms, with a beam of 4 and of 16, and with terms, in one thread, and measures CPU time.
"""

import gzip
import re
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import nmt
from nmt.evaluation import score
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.glossary_files import read_glossary
from nmt.plugins.protection.occurrences import term_words
from nmt.plugins.protection.terms import judge
from nmt.text import clean

DICTIONARY = Path("/usr/share/dictd/freedict-eng-deu.dict.dz")
LETTERS = 4
HEAD = re.compile(rf"([^\W\d_]{{{LETTERS},}}) /.*/\s*")
NOTE = re.compile(r"<[^>]*>|\[[^]]*\]|\{[^}]*\}|\([^)]*\)")


def dictionary() -> dict[str, list[str]]:
    """The translations of each word, in the order of the dictionary; "" for one of several words."""
    found = defaultdict[str, list[str]](list)
    for line, after in pairwise(gzip.decompress(DICTIONARY.read_bytes()).decode().split("\n")):
        if head := HEAD.fullmatch(line):
            parts = [NOTE.sub("", part).strip() for part in after.split(",")]
            found[head[1].lower()] += [
                part if re.fullmatch(rf"\w{{{LETTERS},}}", part) else "" for part in parts
            ]
    return found


def words_of(text: str) -> list[str]:
    return [text[begin:end] for begin, end in term_words(text)]


def write(path: Path, pairs: list[tuple[str, str]]) -> Glossary:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return read_glossary(str(path), "en", "de")


def glossary_of(kind: str, sources: list[str], references: list[str], path: Path) -> Glossary:
    """Write a glossary, and read it."""
    known = dictionary()
    lines = defaultdict[str, list[set[str]]](list)
    for source, reference in zip(sources, references, strict=True):
        for word in {word.lower() for word in words_of(clean(source))} & known.keys():
            lines[word].append(set(words_of(clean(reference))))
    pairs = list[tuple[str, str]]()
    for word in sorted(lines):
        targets = known[word]
        there = [
            target
            for target in dict.fromkeys(targets)
            if target and any(target in own for own in lines[word])
        ]
        if kind == "first":
            pairs += [(word, targets[0])] * bool(targets[0])
        elif all(any(target in own for target in there) for own in lines[word]):
            pairs += [(word, target) for target in there]
    return write(path, pairs)


def recall(glossary: Glossary, sources: list[str], translations: list[str]) -> str:
    """The share of terms that are used."""
    used = [
        is_used
        for source, translation in zip(sources, translations, strict=True)
        for is_used in judge(glossary.find(clean(source)), translation, "de")
    ]
    return f"{100 * sum(used) / len(used):5.1f}"


def main(model: str, source: str, reference: str, kind: str) -> None:
    sources, references = (
        Path(path).read_text(encoding="utf-8").splitlines() for path in (source, reference)
    )
    file = Path(model, f"{kind}.tsv")
    glossary = glossary_of(kind, sources, references, file)
    counts = [len(glossary.find(clean(line))) for line in sources]
    print(f"{file.name}: {len(glossary.terms):,} terms, {sum(counts):,} times in", end=" ")
    print(f"{sum(map(bool, counts)):,} of {len(sources):,} lines")
    searches = {
        f"free, beam of {size}": nmt.load(model, threads=1, beam_size=size) for size in (4, 16)
    }
    searches["terms"] = nmt.load(model, threads=1, glossary=file)
    print("| search | used, % | BLEU | lines/s |\n|---|---|---|---|")
    for name, search in searches.items():
        begin = time.process_time()
        lines = search.translate(sources)
        speed = len(sources) / (time.process_time() - begin)
        [bleu] = score(lines, references, ["bleu"])
        print(
            f"| {name} | {recall(glossary, sources, lines)} | {bleu.value:.1f} | {speed:.1f} |",
            flush=True,
        )
    print(bleu.signature)


if __name__ == "__main__":
    main(*sys.argv[1:])
