"""The tokenizer of a Marian or OPUS-MT model. Unlike nmt's own, it can produce pieces that have no id."""

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from itertools import groupby

from nmt.config import UNK
from nmt.files import parse_json
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET
from nmt.text.tokenizers import META, SYMBOLS, Tokenizer

MARIAN_KEY = "nmt_marian"
"""The key that identifies a MarianTokenizer's file; its value is the format version."""
MARIAN_SYMBOLS = ("</s>", "<unk>", "<pad>")
TAG = re.compile(">>.*?<<")
BYTE = re.compile("<0x[0-9A-F]{2}>")
"""How sentencepiece spells a byte of a character that it does not know."""


def with_characters(pieces: Iterable[str]) -> list[str]:
    """Replace bytes with the characters that they spell: a side's sentencepiece model may not have them."""
    result = list[str]()
    for is_bytes, group in groupby(pieces, lambda piece: BYTE.fullmatch(piece) is not None):
        run = list(group)
        if is_bytes:
            spelled = bytes(int(piece[3:5], 16) for piece in run)
            run = [spelled.decode(errors="replace")]
        result += run
    return result


class MarianTokenizer(Tokenizer):
    """A sentencepiece model for each side, and tables that number the pieces.

    Its file is JSON: the models in base64, and a table in Marian's order for each side, or one for both. The first ids
    are PAD, BOS, EOS and UNK; the table's other entries follow in order. The sentencepiece models normalize the text.
    With `tags`, a tag such as >>fra<< at the beginning of a line bypasses the models.
    """

    kind = "marian"
    normalization = NORMALIZATIONS["none"]

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        tree = parse_json(content)
        self.tables, self.has_tags = tree["tables"], tree["tags"]
        self.models = [b64decode(model, validate=True) for model in tree["models"]]
        strings = all(isinstance(entry, str) for table in self.tables for entry in table)
        # sentencepiece accepts an empty model, but fails when it encodes the first line.
        if (tree[MARIAN_KEY], len(self.models), all(self.models), strings) != (1, 2, True, True):
            raise ValueError("not in the format that nmt writes")
        for table in self.tables:
            if len(set(table)) < len(table) or not set(MARIAN_SYMBOLS[:2]) <= set(table):
                raise ValueError("its vocabulary has a duplicate entry, or lacks </s> or <unk>")
        self.processors = [
            sentencepiece.SentencePieceProcessor(model_proto=model) for model in self.models
        ]
        sides = [
            [e for e in table if e not in MARIAN_SYMBOLS]
            for table in (self.tables[0], self.tables[-1])
        ]
        self.ids = [
            {entry: number for number, entry in enumerate(table, UNK + 1)} for table in sides
        ]
        # A table may also have <s>, which gets a suffix because it is not our <s>.
        self.entries = [
            [*SYMBOLS, *(entry + META * (entry in SYMBOLS) for entry in table)] for table in sides
        ]
        self.vocabulary_size = len(self.entries[TARGET])
        self.source_vocabulary_size = len(self.entries[SOURCE]) if len(self.tables) == 2 else None
        if self.has_tags:
            self.tags = {
                entry: id for entry, id in self.ids[SOURCE].items() if TAG.fullmatch(entry)
            }

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.entries[side][id])

    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        tags = [tag[0] if self.has_tags and (tag := TAG.match(line)) else "" for line in lines]
        texts = [line.removeprefix(tag) for line, tag in zip(lines, tags, strict=True)]
        pieces = [self.processors[side].encode(text, out_type=str) for text in texts]
        rows = ([tag, *row] if tag else row for tag, row in zip(tags, pieces, strict=True))
        return [[self.ids[side].get(piece, UNK) for piece in row] for row in rows]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        pieces = with_characters(self.symbol(int(id), side) for id in ids if id > UNK)
        text = str(self.processors[side].decode_pieces(pieces))
        return text.replace(META, " ").strip()  # pieces of the other side keep META for spaces
