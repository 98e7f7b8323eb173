"""Measure what the pipeline does to human translations in many scripts.

    python benchmarks/scripts.py FOLDER [LINES]

FOLDER has pairs of files such as libreoffice.ja.en and libreoffice.ja (lines in English, and their
translations). benchmarks/catalogs.py makes them from Debian's packages of LibreOffice. Of each
corpus, at most LINES (5,000) lines are read. For each corpus, the script prints

- the ceiling: chrF of the references after normalization and a vocabulary, and lines changed;
- items: of the lines with protected items, how many are judged to lack one, and of those, how many
  have every item literally in the translation;
- flags: how many translations are flagged as likely failures, and the most frequent flag;
- glossary: of the lines whose translations contain the translation of a term, how many count as
  using it, for the verdict and for the search. The terms are the corpus's own short lines. Whether
  a translation contains one is decided by searching for it between blanks, punctuation, and the
  most frequent particles and prefixes of the language; in scripts without blanks, anywhere.

Then it prints, for each language, how many of tests/core/lines are split right.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import regex

from nmt.config import TokenizerConfig
from nmt.evaluation import score
from nmt.flags.finding import flags
from nmt.items.finder import USUAL, Finder
from nmt.items.items import Items
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.term_stage import Terms
from nmt.plugins.protection.terms import judge
from nmt.sentences.splitting import split_sentences
from nmt.text import TARGET, Tokenizer, clean, scripts_of_language, single_blanks, train_tokenizer
from nmt.translation import Segment

LINES = 5_000
TERMS = 20
FEWEST_LINES = 10  # in which a term occurs
VOCABULARY = 8_000
MARKED_LINES = Path(__file__).parents[1] / "tests" / "plugins" / "sentences" / "lines"
BORDER = "|"
AFFIXES = {
    "ar": ("(?:[وف]?(?:ال|[بك]ال|لل|[بكل])?)", ""),
    "he": ("(?:ו?(?:[הבכלמש]|מה|של|שה)?)", ""),
    "ko": (
        "",
        "(?:이|가|은|는|을|를|의|에|에서|에는|에서는|로|으로|와|과|도|만|까지|부터|이나|나)?",
    ),
    "fa": ("", "(?:\u200c(?:ها|های|هایی|ی))?"),
}
"""Patterns of what languages write together with a word, before and after it."""
Pair = tuple[str, str]


def pairs_of(source: Path, target: Path, lines: int) -> list[Pair]:
    sides = [path.read_text(encoding="utf-8").splitlines() for path in (source, target)]
    pairs = list(zip(*sides, strict=True))
    return random.Random(1).sample(pairs, min(lines, len(pairs)))


def share(part: int, whole: int) -> str:
    return f"{part / max(whole, 1):.2%} ({part:,} of {whole:,})"


def ceiling(tokenizer: Tokenizer, targets: list[str]) -> str:
    """What a perfect model could score: references, encoded and decoded."""
    ids = tokenizer.encode([tokenizer.clean(target, TARGET) for target in targets], TARGET)
    written = [tokenizer.decode(line) for line in ids]
    changed = sum(
        line != single_blanks(target) for line, target in zip(written, targets, strict=True)
    )
    [chrf] = score(written, targets, ["chrf"])
    return f"chrF {chrf.value:.2f}, changed {share(changed, len(targets))}"


def items(pairs: list[Pair]) -> str:
    finder = Finder([USUAL])
    with_items = literally = lost = kept = 0
    for source, target in pairs:
        line = clean(source)
        stretches = finder.stretches(line)
        if not stretches:
            continue
        with_items += 1
        items_of_line = Items(line, stretches)
        in_target = Counter({text: target.count(text) for text in items_of_line.texts})
        has_all = not Counter(items_of_line.texts) - in_target
        literally += has_all
        if not items_of_line.arrive(single_blanks(target)):
            lost += 1
            kept += has_all
    return f"lost {share(lost, with_items)}, although literally there {share(kept, literally)}"


def flagged(pairs: list[Pair], language: str) -> str:
    scripts = scripts_of_language(language)
    raised = [flags(source, target, scripts) for source, target in pairs]
    count = sum(map(bool, raised))
    usual = Counter(flag for row in raised for flag in row).most_common(2)
    return f"{share(count, len(pairs))}, {', '.join(f'{flag} {times}' for flag, times in usual)}"


def pattern_of(term: str, language: str) -> regex.Pattern[str]:
    """A pattern for a word in a text: an oracle that knows less than the glossary."""
    word = r"[\p{L}\p{M}\p{N}_\u200c]"
    if regex.search(r"[\p{Han}\p{Hiragana}\p{Thai}]", term):
        return regex.compile(regex.escape(term))
    if regex.search(r"\p{Katakana}", term):
        word = r"[\p{Katakana}\u30fc]"
    before, after = AFFIXES.get(language, ("", ""))
    return regex.compile(f"(?<!{word}){before}{regex.escape(term)}{after}(?!{word})", regex.I)


def terms_of(pairs: list[Pair]) -> list[Pair]:
    """Words of the corpus and their translations: short lines that others contain most often."""
    words = {
        source.lower(): target
        for source, target in pairs
        if source.isalpha() and len(source) > 3 and 1 < len(target) <= 12 and " " not in target
        if target.isalpha() or not target.isascii()
    }
    counts = Counter[str]()
    for source, target in pairs:
        for word in set(clean(source).lower().split()):
            counts[word] += word in words and words[word] in target
    return [
        (word, words[word]) for word, count in counts.most_common(TERMS) if count >= FEWEST_LINES
    ]


def glossary(tokenizer: Tokenizer, terms: list[Pair], pairs: list[Pair], language: str) -> str:
    used = met = lines = 0
    for term, translation in terms:
        pattern = pattern_of(translation, language)
        glossary = Glossary([(term, translation, False)])
        stage = Terms(glossary, tokenizer, Finder([]))
        for source, target in pairs:
            matches = glossary.find(clean(source))
            if len(matches) != 1 or not pattern.search(target):
                continue
            lines += 1
            [verdict] = judge(matches, target)
            used += verdict
            [ids] = tokenizer.encode([tokenizer.clean(target, TARGET)], TARGET)
            constraints = stage.constraints(
                [Segment(tokenizer.encode([clean(source)])[0], clean(source))]
            )
            met += constraints is not None and constraints.are_met(0, ids)
    return f"{len(terms)} terms, verdict {share(used, lines)}, search {share(met, lines)}"


def corpora(folder: Path) -> Iterator[tuple[str, str, Path, Path]]:
    """The name, language and files of each corpus in a folder."""
    for source in sorted(folder.glob("*.*.en")):
        name, language, _ = source.name.split(".")
        yield name, language, source, source.with_suffix("")


def sentences() -> None:
    print("\nsentences")
    for path in sorted(MARKED_LINES.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        right = 0
        for line in lines:
            expected = [part.strip() for part in line.split(BORDER)]
            split = [part.strip() for part in split_sentences(line.replace(BORDER, ""), path.stem)]
            right += split == expected
        print(f"{path.stem:6} lines {share(right, len(lines))}")


def main(folder: Path, lines: int = LINES) -> None:
    for name, language, source, target in corpora(folder):
        whole = pairs_of(source, target, sys.maxsize)
        pairs = whole[:lines]
        targets = [target for _, target in pairs]
        config = TokenizerConfig(kind="bpe", vocabulary_size=VOCABULARY)
        learned = (clean(line) for pair in pairs for line in pair)
        tokenizer = train_tokenizer(learned, config)
        print(f"{name} {language}, {len(pairs):,} lines")
        print("  ceiling ", ceiling(tokenizer, targets))
        print("  items   ", items(pairs))
        print("  flags   ", flagged(pairs, language))
        if terms := terms_of(whole):
            print("  glossary", glossary(tokenizer, terms, pairs, language), flush=True)
    sentences()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
