"""Tokenizers whose tables number the pieces of a sentencepiece model, and have tags of languages.

In M2M-100, NLLB and mBART-50, a source begins with the tag of its language, and so does a target.
In SMaLL-100, only the source has a tag, that of the target language. `nmt extend` gives nmt's own
vocabularies with tags this form, too.
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nmt.config import CODE, DIRECTION, UNK
from nmt.files import parse_json
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET
from nmt.text.sentencepieces import encode_texts, escaped, unescaped
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
    are_texts = all(isinstance(entry, str) and entry for entry in entries)
    if tree[MULTILINGUAL_KEY] != VERSION or tree["tagged"] not in (BOTH_SIDES, ONLY_SOURCE):
        raise ValueError("not in the format that nmt writes")
    if not are_texts or len({*entries, *SYMBOLS}) < len(entries) + len(SYMBOLS):
        raise ValueError("its vocabulary has a duplicate entry, or one that is not text")
    for code, entry in tree["languages"].items():
        # Codes become parts of tags and of file names.
        if not re.fullmatch(CODE, code):
            raise ValueError(f"{code[:40]!r} is not a language code")
        if entry not in entries:
            raise ValueError(f"its vocabulary lacks the tag of {code}")


def tags_in(tree: Any) -> dict[str, str]:
    """The tags of sources, as users write them, and their entries."""
    tags: dict[str, str] = tree.get("tags", {})
    return tags or {f"<2{code}>": entry for code, entry in tree["languages"].items()}


@dataclass(frozen=True)
class Pieces:
    """A sentencepiece model, and the numbers of its pieces in the vocabulary."""

    model: bytes
    processor: Any
    ids: list[int]
    """The id of each piece. A piece that the vocabulary lacks is unknown."""

    def encode(self, texts: list[str]) -> list[list[int]]:
        rows = encode_texts(self.processor, texts)
        return [[self.ids[piece] for piece in row] for row in rows]


def read_pieces(model: bytes, numbers: dict[str, int]) -> Pieces:
    """Read a sentencepiece model, given the number of each entry that is a piece."""
    import sentencepiece

    # sentencepiece accepts an empty model, but fails when it encodes the first line.
    if not model:
        raise ValueError("its sentencepiece model is empty")
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(piece) for piece in range(processor.vocab_size())]
    return Pieces(model, processor, [numbers.get(piece, UNK) for piece in pieces])


class MultilingualTokenizer(Tokenizer):
    """A sentencepiece model, a table that numbers its pieces, and the tags of languages.

    Its file is JSON: the model in base64, the entries after PAD, BOS, EOS and UNK in the order of
    their ids, a mapping from language codes to entries, and the sides that have tags. Entries that
    are not pieces of the model, such as the tags, have no text.

    `nmt extend` adds models with more pieces, and the languages that each is for. Text in all other
    languages is encoded as before. A vocabulary of nmt's own also records its normalization. nmt
    then escapes some characters, as in `SentencePieceTokenizer`.
    """

    @property
    def kind(self) -> str:
        # Only some programs can encode the languages of a vocabulary differently.
        return "extended" if self.extensions else "multilingual"

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        tree = parse_json(content)
        check(tree)
        self.entries: list[str] = [*SYMBOLS, *tree["entries"]]
        self.vocabulary_size = len(self.entries)
        numbers = {entry: number for number, entry in enumerate(self.entries)}
        self.languages = {code: numbers[entry] for code, entry in tree["languages"].items()}
        self.has_target_tags = tree["tagged"] == BOTH_SIDES
        tags = tags_in(tree)
        if not self.has_target_tags:
            self.tags = {tag: numbers[entry] for tag, entry in tags.items()}
        normalization = tree.get("normalization")
        self.is_escaped = normalization is not None
        self.normalization = NORMALIZATIONS[normalization or "none"]
        # Text never becomes a symbol or a tag.
        excluded = {*SYMBOLS, *tree["languages"].values(), *tags.values()}
        of_text = {entry: id for entry, id in numbers.items() if entry not in excluded}
        self.base = read_pieces(b64decode(tree["model"], validate=True), of_text)
        # Language -> the pieces that it is encoded with, if not with those of `base`.
        self.extensions = dict[str, Pieces]()
        # The newest model has the pieces of all others.
        self.newest = self.base
        # Where tags do not name the source language, all sources.
        self.of_sources = self.base
        for extension in tree.get("extensions", ()):
            model = b64decode(extension["model"], validate=True)
            self.newest = read_pieces(model, of_text)
            self.extensions.update(dict.fromkeys(extension["languages"], self.newest))
            if "source_model" in extension:
                model = b64decode(extension["source_model"], validate=True)
                self.of_sources = read_pieces(model, of_text)
        # The piece of each entry; none for symbols, and for entries that are not pieces.
        self.pieces_of_ids: list[int | None] = [None] * self.vocabulary_size
        for piece, id in enumerate(self.newest.ids):
            if id > UNK:
                self.pieces_of_ids[id] = piece

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

    def pieces_for(self, tag: str, side: int) -> Pieces:
        """The pieces with which a line with this tag, or its translation, is encoded."""
        if self.has_target_tags:
            language = self.languages_of(tag)[side]
        elif side == SOURCE:
            return self.of_sources
        else:
            language = tag.strip("<>").removeprefix("2")
        return self.extensions.get(language, self.base)

    def encode(self, lines: Sequence[str], side: int = SOURCE, tag: str = "") -> list[list[int]]:
        # A tag in a target is text like any other.
        tags = [self.leading_tag(line) if side == SOURCE else "" for line in lines]
        texts = []
        for line, own_tag in zip(lines, tags, strict=True):
            text = line.removeprefix(own_tag).lstrip()
            texts.append(escaped(text) if self.is_escaped else text)
        if not self.extensions:
            rows = self.base.encode(texts)
        else:
            rows = self.encoded_by_language(texts, [own_tag or tag for own_tag in tags], side)
        return [
            [self.tag_id(own_tag), *ids] if own_tag else ids
            for own_tag, ids in zip(tags, rows, strict=True)
        ]

    def encoded_by_language(self, texts: list[str], tags: list[str], side: int) -> list[list[int]]:
        """Encode each text with the pieces for its language, which its tag names."""
        places = dict[int, list[int]]()
        pieces = [self.pieces_for(tag, side) for tag in tags]
        for place, used in enumerate(pieces):
            places.setdefault(id(used), []).append(place)
        rows: list[list[int]] = [[]] * len(texts)
        for same in places.values():
            encoded = pieces[same[0]].encode([texts[place] for place in same])
            for place, ids in zip(same, encoded, strict=True):
                rows[place] = ids
        return rows

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        pieces = []
        for id in ids:
            piece = self.pieces_of_ids[int(id)]
            if piece is not None:
                pieces.append(piece)
        text: str = self.newest.processor.decode(pieces)
        if self.is_escaped:
            return unescaped(text)
        return text.replace(META, " ").strip()
