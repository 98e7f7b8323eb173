"""Imported vocabularies: sentencepiece models, and tables that number their pieces.

Our vocabularies begin with PAD, BOS, EOS and UNK. Imported vocabularies are tables that contain
</s> and <unk>, and in transformers also <pad>.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from nmt import files
from nmt.config import NMTError, one_line
from nmt.text import MARIAN_KEY, MARIAN_SYMBOLS, MarianTokenizer


def read_table(path: Path) -> list[str]:
    """The entries of a vocabulary file, which maps each entry to its number, in order."""
    parse: Callable[[str], Any]
    if path.suffix == ".json":
        parse = files.parse_json
    else:
        # YAML's usual loader would read the entry `no` as False.
        parse = partial(files.parse_yaml, kind="BaseLoader")
    # Vocabularies are larger than other mappings.
    numbers = files.read_mapping(path, parse, files.LARGE)
    expected = range(len(numbers))
    # As text, because the loader that keeps `no` a string keeps numbers as strings, too.
    if sorted(map(str, numbers.values())) != sorted(map(str, expected)):
        raise NMTError(f"{path}: its entries must be numbered 0, 1, 2 and so on, each number once")
    return sorted(numbers, key=lambda entry: int(numbers[entry]))


def tokenizer_of(models: Sequence[Path], tables: Sequence[list[str]] = ()) -> MarianTokenizer:
    """The tokenizer with two sentencepiece models, for the source and the target.

    Tables number the pieces. Without tables, pieces have the numbers that they have in the models.
    """
    folder = models[0].parent
    contents = [files.read_bytes(path) for path in models]
    if not all(contents):
        raise NMTError(f"{folder}: a vocabulary is empty")
    pieces = [pieces_of(path, content) for path, content in zip(models, contents, strict=True)]
    # A single model, or the same one twice, serves both sides.
    is_shared = len(set(contents)) == 1
    tree = {
        MARIAN_KEY: 1,
        "tags": bool(tables),
        "models": [b64encode(content).decode() for content in contents],
        "tables": tables or (pieces[:1] if is_shared else pieces),
    }
    try:
        return MarianTokenizer(json.dumps(tree, ensure_ascii=False).encode())
    except (ValueError, RuntimeError) as error:
        raise NMTError(f"{folder}: cannot make a tokenizer ({one_line(error)})") from error


def pieces_of(path: Path, content: bytes) -> list[str]:
    """The pieces of a sentencepiece model; NMTError names the file and, if possible, the piece."""
    try:
        processor = SentencePieceProcessor(model_proto=content)
        return [str(processor.id_to_piece(id)) for id in range(processor.vocab_size())]
    except (ValueError, RuntimeError) as error:
        # sentencepiece's own message names neither the file nor the piece.
        number = nul_piece(content)
        if number is None:
            problem = one_line(error)
        else:
            problem = f"piece {number} contains a NUL character, which sentencepiece cannot read"
        advice = "export or download the model again"
        raise NMTError(f"{path}: cannot make a tokenizer ({problem}): {advice}") from error


def nul_piece(content: bytes) -> int | None:
    """The number of the first piece with a NUL character in a sentencepiece model, from 0."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from sentencepiece import sentencepiece_model_pb2

    try:
        model = sentencepiece_model_pb2.ModelProto.FromString(content)  # type: ignore[attr-defined]
    except DecodeError:
        return None
    for number, entry in enumerate(model.pieces):
        if "\0" in entry.piece:
            return number
    return None


def rows_of(table: Sequence[str], has_padding: bool) -> list[int]:
    """The row number in Marian's order for each of our ids.

    Without `has_padding`, PAD and BOS share an additional last row.
    """
    row = {entry: number for number, entry in enumerate(table)}
    added_row = len(table)
    end, unknown, padding = (row.get(symbol, added_row) for symbol in MARIAN_SYMBOLS)
    if not has_padding:
        padding = added_row
    # Our other ids follow the order of the table, whatever the places of its symbols.
    others = [row[entry] for entry in table if entry not in MARIAN_SYMBOLS]
    # In our order: PAD, BOS, EOS, UNK. MarianMT's decoder starts from <pad>.
    return [padding, padding, end, unknown, *others]
