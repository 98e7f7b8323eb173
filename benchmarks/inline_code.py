"""Measure how translations of Markdown treat inline code: each piece should occur once and not be translated beside it.

python benchmarks/inline_code.py collect FOLDER > code.md     # paragraphs with code from the FOLDER's Markdown files
python benchmarks/inline_code.py pairs test.en test.de > code.md 2> reference.md
python benchmarks/inline_code.py check code.md code.de.md     # two versions of code.md, before and after translation
python benchmarks/inline_code.py check code.md code.de.md reference.md

`pairs` turns a word that both sides of a sentence pair have, such as a name, into code. With this reference, `check`
also prints the chrF of the words outside of code. markdown-it finds the code, independently of nmt.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from nmt.evaluation import score

MOST = 200  # paragraphs
PARSER = MarkdownIt("commonmark")
PLAIN = ("text", "code_inline", "softbreak", "em_open", "em_close", "strong_open", "strong_close")
WORD = re.compile(r"[^\W\d_]{3,}")


def paragraphs(text: str) -> Iterator[tuple[Counter[str], str]]:
    """For each paragraph, its pieces of code and the text outside of them."""
    tokens = PARSER.parse(text)
    for before, token in pairwise(tokens):
        if before.type == "paragraph_open" and before.level == 0:
            parts = token.children or []
            codes = Counter(part.content for part in parts if part.type == "code_inline")
            outside = (part.content if part.type == "text" else " " for part in parts)
            yield codes, "".join(outside)


def sentences_with_code(folder: Path) -> Iterator[str]:
    """The paragraphs of a folder's Markdown files that have 8 to 40 words, code, and no other markup than emphasis."""
    for file in sorted(folder.rglob("*.md")):
        text = file.read_text(encoding="utf-8", errors="replace")
        tokens = PARSER.parse(text)
        for before, token in pairwise(tokens):
            types = [part.type for part in token.children or []]
            content = " ".join(token.content.split())
            is_usual = (
                before.type == "paragraph_open"
                and set(types) <= {*PLAIN}
                and "code_inline" in types
            )
            if (
                is_usual
                and 8 <= len(content.split()) <= 40
                and not re.search(r"[{}<>|\[\]\\]|^[:!/]", content)
            ):
                yield content


def collect(folder: Path) -> list[str]:
    """The same number of sentences from each of the folder's folders."""
    rows = [[*dict.fromkeys(sentences_with_code(part))] for part in sorted(folder.iterdir())]
    share = MOST // len(rows)
    # Spread over all files.
    return [row[n * len(row) // share] for row in rows for n in range(min(share, len(row)))]


def pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Sentence pairs with a word that each side has once, as code."""
    sides = (file.read_text(encoding="utf-8").splitlines() for file in (source, target))
    for pair in zip(*sides, strict=True):
        words = [Counter(re.findall(r"[^\W\d_]{3,}", side)) for side in pair]
        same = [word for word, count in words[0].items() if count == 1 == words[1][word]]
        if same and not re.search(r"[`*_<>\[\]|\\]", "".join(pair)):
            before, after = (
                re.sub(rf"(?<!\w){same[0]}(?!\w)", f"`{same[0]}`", side) for side in pair
            )
            yield before, after


def check(source: str, translation: str) -> tuple[str, list[str]]:
    """Summarize how many paragraphs have their code once; return the texts outside of code, too."""
    intact = single = 0
    rows = [*zip(paragraphs(source), paragraphs(translation), strict=True)]
    for (codes, text), (new_codes, new_text) in rows:
        words = {word.lower() for code in codes for word in WORD.findall(code)}
        before, after = ({word.lower() for word in WORD.findall(side)} for side in (text, new_text))
        is_repeated = not words.isdisjoint(after - before)
        intact += codes == new_codes
        single += codes == new_codes and not is_repeated
    lengths = [sum(len(text.split()) for _, text in side) for side in zip(*rows, strict=True)]
    shares = (
        f"{intact} of {len(rows)} have all code once, {single} of them without its words beside it"
    )
    return f"{shares}; {lengths[1] / lengths[0]:.3f} words per source word", [
        text for _, (_, text) in rows
    ]


def main(task: str, *names: str) -> None:
    files = [Path(name) for name in names]
    if task == "collect":
        print("\n\n".join(collect(files[0])))
    elif task == "pairs":
        rows = [*pairs(*files)][:MOST]
        print("\n\n".join(source for source, _ in rows))
        print("\n\n".join(target for _, target in rows), file=sys.stderr)
    else:
        source, translation, *references = (file.read_text(encoding="utf-8") for file in files)
        summary, texts = check(source, translation)
        print(summary)
        for reference in references:
            [chrf] = score(texts, [text for _, text in paragraphs(reference)], ["chrf"])
            print(f"outside of code: chrF {chrf.value:.2f} ({chrf.signature})")


if __name__ == "__main__":
    main(*sys.argv[1:])
