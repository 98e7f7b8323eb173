"""Extend a tokenizer by languages and subwords."""

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from nmt.config import NMTError
from nmt.files import parse_json
from nmt.plugins.extend.learning import NewPiece, extended_model, learn_pieces
from nmt.text import (
    MULTILINGUAL_KEY,
    ONLY_SOURCE,
    SYMBOLS,
    MultilingualTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    escaped,
)


@dataclass(frozen=True)
class Extension:
    """An extended vocabulary, and how its new entries relate to old ones."""

    tokenizer: MultilingualTokenizer
    tags: list[str]
    """The new tags, which are the first new entries."""
    pieces: list[NewPiece]
    """The new pieces, which follow the tags."""


def tree_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of a tokenizer's file in the form of a MultilingualTokenizer.

    NMTError for a vocabulary that cannot be extended.
    """
    if isinstance(tokenizer, MultilingualTokenizer):
        tree: dict[str, Any] = parse_json(tokenizer.content)
        return tree
    if not isinstance(tokenizer, SentencePieceTokenizer):
        raise NMTError(
            f"a vocabulary of the kind {tokenizer.kind} cannot be extended; only bpe, unigram and "
            "multilingual"
        )
    return {
        MULTILINGUAL_KEY: 1,
        "tagged": ONLY_SOURCE,
        "languages": {},
        "tags": {tag: tag for tag in tokenizer.tags},
        "normalization": tokenizer.normalization.name,
        "model": b64encode(tokenizer.content).decode(),
        "entries": tokenizer.vocabulary()[len(SYMBOLS) :],
    }


def newest_model(tree: dict[str, Any]) -> str:
    """The sentencepiece model with all pieces, in base64."""
    extensions = tree.get("extensions")
    return str(extensions[-1]["model"] if extensions else tree["model"])


def extend(
    tokenizer: Tokenizer, languages: list[str], texts: list[str], most: int, least: int
) -> Extension:
    """Add languages, and subwords that are frequent in their texts.

    Only text in these languages is encoded with the new subwords. Where tags do not name the source
    language, new subwords of sources have a character that the vocabulary lacked.
    """
    from base64 import b64decode

    tree = tree_of(tokenizer)
    before = MultilingualTokenizer(encoded(tree))
    model = b64decode(newest_model(tree))
    lines = [before.clean(text) for text in texts]
    if before.is_escaped:
        lines = [escaped(line) for line in lines]
    tags = [tag_of(tokenizer, code) for code in languages]
    taken = set(before.entries).intersection(tags)
    if taken:
        raise NMTError(f"languages: {', '.join(sorted(taken))} is in the vocabulary already")
    pieces = learn_pieces(model, lines, {*before.entries, *tags}, most, least)
    extension = {
        "languages": languages,
        "model": b64encode(extended_model(model, pieces)).decode(),
    }
    if not before.has_target_tags:
        foreign = with_foreign_characters(pieces)
        extension["source_model"] = b64encode(extended_model(model, foreign)).decode()
    tree["entries"] = [*tree["entries"], *tags, *(piece.text for piece in pieces)]
    tree["languages"] = {**tree["languages"], **dict(zip(languages, tags, strict=True))}
    if "tags" in tree:
        tree["tags"] = {**tree["tags"], **{tag: tag for tag in tags}}
    tree["extensions"] = [*tree.get("extensions", ()), extension]
    return Extension(MultilingualTokenizer(encoded(tree)), tags, pieces)


def encoded(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, ensure_ascii=False).encode()


def tag_of(tokenizer: Tokenizer, code: str) -> str:
    """The entry for the tag of a new language, in the form of the vocabulary's other tags."""
    entries = {tokenizer.symbol(id) for id in tokenizer.languages.values()}
    if entries and all(entry.startswith("__") for entry in entries):
        return f"__{code}__"  # M2M-100
    return code if tokenizer.has_target_tags else f"<2{code}>"


def with_foreign_characters(pieces: list[NewPiece]) -> list[NewPiece]:
    """The new pieces that contain a new character, which no older text is encoded with."""
    characters = {piece.text for piece in pieces if not piece.parts}
    return [piece for piece in pieces if not characters.isdisjoint(piece.text)]
