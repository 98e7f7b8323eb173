"""The tokenizer of a multilingual model in which tags name the languages of both sides.

M2M-100, NLLB and mBART-50 are such models: a source begins with the tag of its language, and so
does a target. In SMaLL-100, only the source has a tag, that of the target language.
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from nmt.config import CODE, DIRECTION, UNK
from nmt.files import parse_json
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET
from nmt.text.sentencepieces import encode_texts
from nmt.text.tokenizers import META, SYMBOLS, Tokenizer

MULTILINGUAL_KEY = "nmt_multilingual"
"""The key that identifies a MultilingualTokenizer's file; its value is the format version."""
VERSION = 1
BOTH_SIDES = "both"
"""The value of `tagged` if sources and targets have tags."""
ONLY_SOURCE = "source"
"""The value of `tagged` if only sources have tags, which name the target language."""


def direction_tag(source: str, target: str) -> str:
    """The tag of a line that is translated from one language into another."""
    return f"<{source}2{target}>"


def check(tree: Any) -> None:
    """Raise ValueError if a tokenizer's file is not as nmt writes it."""
    entries = tree["entries"]
    languages = tree["languages"]
    are_texts = all(isinstance(entry, str) and entry for entry in entries)
    if tree[MULTILINGUAL_KEY] != VERSION or tree["tagged"] not in (BOTH_SIDES, ONLY_SOURCE):
        raise ValueError("not in the format that nmt writes")
    if not are_texts or len({*entries, *SYMBOLS}) < len(entries) + len(SYMBOLS):
        raise ValueError("its vocabulary has a duplicate entry, or one that is not text")
    for code, entry in languages.items():
        # Codes become parts of tags and of file names.
        if not re.fullmatch(CODE, code):
            raise ValueError(f"{code[:40]!r} is not a language code")
        if entry not in entries:
            raise ValueError(f"its vocabulary lacks the tag of {code}")


class MultilingualTokenizer(Tokenizer):
    """A sentencepiece model, a table that numbers its pieces, and the tags of languages.

    Its file is JSON: the model in base64, the entries after PAD, BOS, EOS and UNK in the order of
    their ids, a mapping from language codes to entries, and the sides that have tags. Entries that
    are not pieces of the model, such as the tags, have no text. The sentencepiece model normalizes
    the text.
    """

    kind = "multilingual"
    normalization = NORMALIZATIONS["none"]

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        tree = parse_json(content)
        self.model = b64decode(tree["model"], validate=True)
        # sentencepiece accepts an empty model, but fails when it encodes the first line.
        if not self.model:
            raise ValueError("its sentencepiece model is empty")
        check(tree)
        self.entries: list[str] = [*SYMBOLS, *tree["entries"]]
        self.vocabulary_size = len(self.entries)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        numbers = {entry: number for number, entry in enumerate(self.entries)}
        self.languages = {code: numbers[entry] for code, entry in tree["languages"].items()}
        self.has_target_tags = tree["tagged"] == BOTH_SIDES
        if not self.has_target_tags:
            self.tags = {f"<2{code}>": number for code, number in self.languages.items()}
        # The id of each piece of the model. A piece that the table lacks is unknown.
        self.ids_of_pieces = [UNK] * self.processor.vocab_size()
        # The piece of each entry; none for symbols, and for entries that are not pieces.
        self.pieces_of_ids: list[int | None] = [None] * self.vocabulary_size
        of_languages = {*self.languages.values()}
        for piece in range(self.processor.vocab_size()):
            number = numbers.get(self.processor.id_to_piece(piece), UNK)
            if number > UNK and number not in of_languages:
                self.ids_of_pieces[piece] = number
                self.pieces_of_ids[number] = piece

    def symbol(self, id: int, side: int = TARGET) -> str:
        return self.entries[id]

    def leading_tag(self, line: str) -> str:
        if not self.has_target_tags:
            return super().leading_tag(line)
        match = DIRECTION.match(line)
        # A tag of other languages is text like any other.
        if match and match["source"] in self.languages and match["target"] in self.languages:
            return match[0]
        return ""

    def tag_id(self, tag: str) -> int:
        source, _ = self.languages_of(tag)
        return self.languages[source] if source in self.languages else super().tag_id(tag)

    def languages_of(self, tag: str) -> tuple[str, str]:
        match = DIRECTION.fullmatch(tag)
        if not self.has_target_tags or match is None:
            return "", ""
        return match["source"], match["target"]

    def target_start(self, tag: str) -> list[int]:
        _, target = self.languages_of(tag)
        return [self.languages[target]] if target else []

    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        tags = [""] * len(lines)
        # A tag in a target is text like any other.
        if side == SOURCE:
            tags = [self.leading_tag(line) for line in lines]
        texts = [line.removeprefix(tag).lstrip() for line, tag in zip(lines, tags, strict=True)]
        rows = []
        for tag, pieces in zip(tags, encode_texts(self.processor, texts), strict=True):
            ids = [self.ids_of_pieces[piece] for piece in pieces]
            rows.append([self.tag_id(tag), *ids] if tag else ids)
        return rows

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        pieces = []
        for id in ids:
            piece = self.pieces_of_ids[int(id)]
            if piece is not None:
                pieces.append(piece)
        text: str = self.processor.decode(pieces)
        return text.replace(META, " ").strip()
