"""What the terms of a dictionary do to a model's translations, and to its speed.

    apt-get install dict-freedict-eng-deu
    OMP_NUM_THREADS=1 python benchmarks/terms.py MODEL SOURCE REFERENCE [FOLDER]

Makes two glossaries of the dictionary for the words of SOURCE, in FOLDER (.): oracle.tsv has those that in every line
with the word have one of the dictionary's translations in the reference; first.tsv the first translation of each word,
whatever the reference says. Both have single words alone, of four letters or more. Each of two rounds translates
without terms, then with each glossary, by one thread; of the times the shorter one counts.
"""

import gzip
import re
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import nmt
from nmt.evaluation.scores import score
from nmt.text.glossary import WORD, Glossary, judge, read_glossary
from nmt.text.tokenizers import clean
from nmt.translation.terms import lemmatiser

DICTIONARY = Path("/usr/share/dictd/freedict-eng-deu.dict.dz")
LETTERS = 4
HEAD = re.compile(r"(\w+) /.*/\s*")
NOTE = re.compile(r"<[^>]*>|\[[^]]*\]|\{[^}]*\}|\([^)]*\)")


def dictionary(words: set[str]) -> dict[str, list[str]]:
    """The translations of these words, in the order of the dictionary; "" for one of several words."""
    found = defaultdict[str, list[str]](list)
    lines = gzip.decompress(DICTIONARY.read_bytes()).decode().split("\n")
    for line, after in pairwise(lines):
        head = HEAD.fullmatch(line)
        if head and head[1].lower() in words:
            parts = [NOTE.sub("", part).strip() for part in after.split(",")]
            found[head[1].lower()] += [part if re.fullmatch(rf"\w{{{LETTERS},}}", part) else "" for part in parts]
    return found


def words_of(line: str) -> set[str]:
    return {word.lower() for word in WORD.findall(clean(line)) if len(word) >= LETTERS and word.isalpha()}


def glossaries(sources: list[str], references: list[str], folder: Path) -> dict[str, Glossary]:
    """Write the two files, and read them."""
    known = dictionary(set().union(*map(words_of, sources)))
    lines = defaultdict[str, list[set[str]]](list)
    for source, reference in zip(sources, references, strict=True):
        for word in words_of(source):
            lines[word].append(set(WORD.findall(clean(reference))))
    pairs = {"oracle": [], "first": []}
    for word, targets in sorted(known.items()):
        there = [target for target in dict.fromkeys(targets) if target and any(target in own for own in lines[word])]
        if all(any(target in own for target in there) for own in lines[word]):
            pairs["oracle"] += [(word, target) for target in there]
        if targets[0]:
            pairs["first"].append((word, targets[0]))
    for name, own in pairs.items():
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in own))
    return {name: read_glossary(str(folder / f"{name}.tsv")) for name in pairs}


def recall(glossary: Glossary, sources: list[str], translations: list[str]) -> str:
    """The share of terms that are used, and of those used or inflected."""
    verdicts = [
        verdict
        for source, translation in zip(sources, translations, strict=True)
        for verdict in judge(glossary.find(clean(source)), translation, lemmatiser("de"))
    ]
    used, missed = verdicts.count("used"), verdicts.count("missed")
    return f"{100 * used / len(verdicts):5.1f} | {100 * (1 - missed / len(verdicts)):5.1f}"


def main(model: str, source: str, reference: str, folder: str = ".") -> None:
    sources, references = (Path(path).read_text(encoding="utf-8").splitlines() for path in (source, reference))
    found = glossaries(sources, references, Path(folder))
    for name, glossary in found.items():
        counts = [len(glossary.find(clean(line))) for line in sources]
        print(f"{name}.tsv: {len(glossary.terms):,} terms, {sum(counts):,} times in", end=" ")
        print(f"{sum(map(bool, counts)):,} of {len(sources):,} lines")
    searches = {"free": nmt.load(model)}
    searches |= {name: nmt.load(model, glossary=str(Path(folder, f"{name}.tsv"))) for name in found}
    translations, seconds = dict[str, list[str]](), defaultdict[str, list[float]](list)
    for _ in range(2):
        for name, search in searches.items():
            begin = time.perf_counter()
            translations[name] = search.translate(sources)
            seconds[name].append(time.perf_counter() - begin)
    print("| search | glossary | used, % | with inflected, % | BLEU | lines/s |\n|---|---|---|---|---|---|")
    for name, lines in translations.items():
        for own in found if name == "free" else [name]:
            [bleu], speed = score(lines, references, ["bleu"]), len(sources) / min(seconds[name])
            kind = "free" if name == "free" else "hard"
            signature = bleu.signature
            print(f"| {kind} | {own} | {recall(found[own], sources, lines)} | {bleu.value:.1f} | {speed:.1f} |")
    print(signature)


if __name__ == "__main__":
    main(*sys.argv[1:])
