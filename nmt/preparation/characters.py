"""The characters of a corpus that the vocabulary of another model lacks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from nmt.config import UNK
from nmt.text import SOURCE, Tokenizer

BYTE = re.compile("<0x[0-9A-F]{2}>")
"""How sentencepiece spells a byte of a character that it lacks."""
SHOWN = 20


def lacks(tokenizer: Tokenizer, character: str, side: int) -> bool:
    """Whether a tokenizer has no entry for a character, so spells it in bytes or not at all."""
    ids = tokenizer.encode([character], side)[0]
    if tokenizer.kind == "wordpiece":
        return len(ids) > 1  # its entries are bytes
    return any(id == UNK or BYTE.fullmatch(tokenizer.symbol(id, side)) for id in ids)


def first_lines(
    blocks: Iterable[pa.RecordBatch],
    characters: Iterable[str],
    side: int,
) -> dict[str, int]:
    """The line of the corpus in which each of these characters occurs first."""
    sought = set(characters)
    lines = dict[str, int]()
    for block in blocks:
        rows = zip(block.column(side).to_pylist(), block.column("line").to_pylist(), strict=True)
        for text, line in rows:
            for character in sought.intersection(text):
                lines[character] = line
                sought.discard(character)
        if not sought:
            break
    return lines


def lacking_characters(
    tokenizer: Tokenizer,
    counts: Counter[str],
    side: int,
    blocks: Iterable[pa.RecordBatch],
) -> str:
    """A notice of the characters of a side that the tokenizer lacks, most frequent first, or ""."""
    lacking = [(one, count) for one, count in counts.most_common() if lacks(tokenizer, one, side)]
    if not lacking:
        return ""
    lines = first_lines(blocks, [character for character, _ in lacking[:SHOWN]], side)
    shown = [described(one, count, lines.get(one, 0)) for one, count in lacking[:SHOWN]]
    if len(lacking) > SHOWN:
        shown.append(f"and {len(lacking) - SHOWN:,} more")
    name = "sources" if side == SOURCE else "targets"
    characters = "1 character" if len(lacking) == 1 else f"{len(lacking):,} characters"
    return (
        f"its vocabulary lacks {characters} of the {name}, so the model translates "
        f"them badly (to give them entries, train a new model without init): {', '.join(shown)}"
    )


def described(character: str, count: int, line: int) -> str:
    """Such as: 'ŋ' (U+014B LATIN SMALL LETTER ENG, 3 times, first in pair 7)."""
    name = unicodedata.name(character, "")
    code = f"U+{ord(character):04X} {name}".rstrip()
    times = "once" if count == 1 else f"{count:,} times"
    return f"{character!r} ({code}, {times}, first in pair {line:,})"
