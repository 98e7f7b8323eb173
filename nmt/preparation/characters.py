"""The characters of a corpus that a model can learn, and those that an existing model lacks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import regex

from nmt.config import UNK
from nmt.files import RARE_LETTERS
from nmt.text import SOURCE, TARGET, Tokenizer

BYTE = re.compile("<0x[0-9A-F]{2}>")
"""The entry with which sentencepiece spells a byte of a character that it lacks."""
SHOWN = 20
"""The maximum number of characters that a notice lists."""
RECORDED_CHARACTERS = 20_000
"""Maximum per side; a corpus with more is assumed to contain every character."""
LEARNED = 50
"""A character spelled in bytes is assumed to be learned if train has it at least this often."""
LETTER_OR_MARK = regex.compile(r"[\p{L}\p{M}]")


def lacks(tokenizer: Tokenizer, character: str, side: int, tag: str) -> bool:
    """Whether a tokenizer has no entry for a character and spells it in bytes, or drops it.

    `tag` is the tag of the line with the character.
    """
    # By encoding, not by looking it up: each kind of tokenizer writes its entries differently.
    ids = tokenizer.encode([character], side, tag)[0]
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
        texts = block.column(side).to_pylist()
        numbers = block.column("line").to_pylist()
        for text, line in zip(texts, numbers, strict=True):
            # The set shrinks, and the corpus is read only until the last character has been found.
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
    tags: Sequence[str],
    blocks: Iterable[pa.RecordBatch],
) -> str:
    """A notice of the characters of a side that the tokenizer lacks, most frequent first, or "".

    `tags` are those of the corpus: an extended vocabulary has some characters in one language only.
    """
    lacking = []
    for sign, _ in counts.most_common():
        if all(lacks(tokenizer, sign, side, tag) for tag in tags):
            lacking.append(sign)
    if not lacking:
        return ""
    # Only for the characters that are shown, because this reads the corpus again.
    lines = first_lines(blocks, lacking[:SHOWN], side)
    shown = []
    for sign in lacking[:SHOWN]:
        shown.append(described(sign, counts[sign], lines.get(sign, 0)))
    if len(lacking) > SHOWN:
        shown.append(f"and {len(lacking) - SHOWN:,} more")
    name = "sources" if side == SOURCE else "targets"
    characters = "1 character" if len(lacking) == 1 else f"{len(lacking):,} characters"
    return (
        f"its vocabulary lacks {characters} of the {name}, so the model translates "
        f"them badly (to give them entries, use `nmt extend`): {', '.join(shown)}"
    )


def described(character: str, count: int, line: int) -> str:
    """Such as: 'ŋ' (U+014B LATIN SMALL LETTER ENG, 3 times, first in pair 7)."""
    name = unicodedata.name(character, "")
    code = f"U+{ord(character):04X} {name}".rstrip()
    times = "once" if count == 1 else f"{count:,} times"
    return f"{character!r} ({code}, {times}, first in pair {line:,})"


def recorded_characters(
    tokenizer: Tokenizer,
    counts: Sequence[Counter[str]],
) -> dict[str, str] | None:
    """The characters that the model can learn, and the rare letters of sources.

    `counts` are those of both sides of train. None if there are too many characters.
    """
    source, target = counts
    if max(len(source), len(target)) > RECORDED_CHARACTERS:
        return None
    learned = learned_characters(tokenizer, source, SOURCE)
    # Rare letters are recorded apart from unknown characters. A word with a letter that training
    # has, if rarely, is translated and not copied.
    rare_letters = filter(LETTER_OR_MARK.match, source.keys() - learned)
    return {
        "source": "".join(sorted(learned)),
        RARE_LETTERS: "".join(sorted(rare_letters)),
        "target": "".join(sorted(learned_characters(tokenizer, target, TARGET))),
    }


def learned_characters(tokenizer: Tokenizer, counts: Counter[str], side: int) -> set[str]:
    """The characters of a side that the vocabulary spells, or that are frequent."""
    # Sentencepiece writes a blank as another character, so no entry contains one.
    spelled = {" ", *"".join(tokenizer.vocabulary(side))}
    return {sign for sign, count in counts.items() if sign in spelled or count >= LEARNED}
