"""The tokenizer of a Marian or OPUS-MT model.

Unlike nmt's own tokenizers, it can produce pieces that have no id.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import Any

from nmt.config import UNK
from nmt.files import parse_json
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET
from nmt.text.tokenizers import META, SYMBOLS, Tokenizer

MARIAN_KEY = "nmt_marian"
"""The key that identifies a MarianTokenizer's file; its value is the format version."""
VERSION = 1
"""The only version so far."""
MARIAN_SYMBOLS = ("</s>", "<unk>", "<pad>")
TAG = re.compile(">>.*?<<")
BYTE = re.compile("<0x[0-9A-F]{2}>")
"""The piece with which sentencepiece spells a byte of an unknown character."""


def with_characters(pieces: Iterable[str]) -> list[str]:
    """Replace bytes with the characters that they spell.

    The sentencepiece model that joins the pieces may have no pieces for bytes.
    """
    result: list[str] = []
    # Bytes of one character stand next to each other, so each run decodes on its own.
    for are_bytes, group in groupby(pieces, lambda piece: BYTE.fullmatch(piece) is not None):
        if are_bytes:
            spelled = bytes(int(piece[3:5], 16) for piece in group)
            result.append(spelled.decode(errors="replace"))
        else:
            result += group
    return result


def check(tree: Any, models: list[bytes]) -> None:
    """Raise ValueError if a tokenizer's file is not as nmt writes it, or its tables are wrong."""
    are_texts = all(isinstance(entry, str) for entry in chain(*tree["tables"]))
    # sentencepiece accepts an empty model, but fails when it encodes the first line.
    are_models = len(models) == 2 and all(models)
    if tree[MARIAN_KEY] != VERSION or not are_models or not are_texts:
        raise ValueError("not in the format that nmt writes")
    end, unknown, _ = MARIAN_SYMBOLS
    for table in tree["tables"]:
        is_complete = end in table and unknown in table
        if len(set(table)) < len(table) or not is_complete:
            raise ValueError("its vocabulary has a duplicate entry, or lacks </s> or <unk>")


class MarianTokenizer(Tokenizer):
    """A sentencepiece model for each side, and tables that number the pieces.

    Its file is JSON: the models in base64, and a table in Marian's order for each side, or one for
    both. The first ids are PAD, BOS, EOS and UNK; the table's other entries follow in order. The
    sentencepiece models normalize the text. With `tags`, a tag such as >>fra<< at the beginning of
    a line bypasses the models.
    """

    kind = "marian"
    normalization = NORMALIZATIONS["none"]

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        tree = parse_json(content)
        self.models = [b64decode(model, validate=True) for model in tree["models"]]
        check(tree, self.models)
        self.tables = tree["tables"]
        self.has_tags = tree["tags"]
        self.processors = [
            sentencepiece.SentencePieceProcessor(model_proto=model) for model in self.models
        ]
        self.ids: list[dict[str, int]] = []
        self.entries: list[list[str]] = []
        # With one table for both sides, the first is also the last.
        for table in (self.tables[0], self.tables[-1]):
            # nmt numbers its own symbols first, in another order than Marian.
            others = [entry for entry in table if entry not in MARIAN_SYMBOLS]
            self.ids.append({entry: number for number, entry in enumerate(others, UNK + 1)})
            self.entries.append([*SYMBOLS, *map(distinct_from_symbols, others)])
        self.vocabulary_size = len(self.entries[TARGET])
        self.source_vocabulary_size = None
        if len(self.tables) == 2:
            self.source_vocabulary_size = len(self.entries[SOURCE])
        if self.has_tags:
            ids = self.ids[SOURCE]
            self.tags = {entry: id for entry, id in ids.items() if TAG.fullmatch(entry)}

    def symbol(self, id: int, side: int = TARGET) -> str:
        return self.entries[side][id]

    def encode(self, lines: Sequence[str], side: int = SOURCE, tag: str = "") -> list[list[int]]:
        ids = self.ids[side]
        rows = []
        for line in lines:
            pieces = self.pieces(line, side)
            # The sentencepiece model and the table come from different files and may differ.
            rows.append([ids.get(piece, UNK) for piece in pieces])
        return rows

    def pieces(self, line: str, side: int) -> list[str]:
        """The pieces of a line; a tag at its beginning is one piece."""
        tag = TAG.match(line) if self.has_tags else None
        if tag:
            text = line.removeprefix(tag[0])
            return [tag[0], *self.processors[side].encode(text, out_type=str)]
        return self.processors[side].encode(line, out_type=str)  # type: ignore[no-any-return]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        # Pieces, not ids: the table numbers them differently from the sentencepiece model.
        symbols = (self.symbol(int(id), side) for id in ids if id > UNK)
        text = str(self.processors[side].decode_pieces(with_characters(symbols)))
        # Pieces of the other side keep META for spaces.
        return text.replace(META, " ").strip()


def distinct_from_symbols(entry: str) -> str:
    """An entry of a table as a symbol of nmt; <s> in a table is not nmt's <s>."""
    return entry + META if entry in SYMBOLS else entry
