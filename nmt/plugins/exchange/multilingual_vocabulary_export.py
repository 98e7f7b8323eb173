"""Write the vocabularies of M2M-100, NLLB, SMaLL-100 and mBART-50 as transformers reads them.

`read_vocabulary` reads the same files.
"""

from base64 import b64encode
from typing import Any

from nmt.config import ModelConfig, NMTError
from nmt.files import ModelDescription, trained_directions
from nmt.plugins.exchange.multilingual_vocabulary import (
    FAIRSEQ_SYMBOLS,
    LANGUAGE_LISTS,
    NUMBERED_BY_FILE,
    SENTENCEPIECE,
)
from nmt.text import SYMBOLS, MultilingualTokenizer, match_language, parse_sentencepiece

UNIGRAM = "MBart50Tokenizer"
BPE = "NllbTokenizer"


def tokenizer_class(model: ModelConfig, tokenizer: MultilingualTokenizer) -> str:
    """The name of transformers' class for a tokenizer."""
    if not tokenizer.has_target_tags:
        return "SMALL100Tokenizer"
    entries = {tokenizer.entries[id] for id in tokenizer.languages.values()}
    if all(entry.startswith("__") for entry in entries):
        return "M2M100Tokenizer"
    return UNIGRAM if model.embedding_norm else BPE


def example_direction(
    description: ModelDescription, tokenizer: MultilingualTokenizer
) -> tuple[str, str]:
    """The languages of an example: those of the training, or else English and German."""
    codes = [*tokenizer.languages]
    for source, target in [*trained_directions(description), ("en", "de")]:
        source_code = match_language(source, codes)
        target_code = match_language(target, codes)
        if source_code and target_code:
            return source_code, target_code
    return codes[0], codes[-1]


def sentencepiece_files(tokenizer: MultilingualTokenizer) -> dict[str, bytes]:
    """The sentencepiece models of a vocabulary, keyed by file name.

    The first one is for all languages that `nmt extend` did not add.
    """
    models = {SENTENCEPIECE: tokenizer.base.model}
    for code, name in files_of_new_languages(tokenizer).items():
        models[name] = tokenizer.extensions[code].model
    return models


def files_of_new_languages(tokenizer: MultilingualTokenizer) -> dict[str, str]:
    """Codes of the languages that `nmt extend` added -> the file of their sentencepiece model."""
    names = dict[int, str]()
    files = {}
    for code, pieces in tokenizer.extensions.items():
        # Languages that were added together share one model.
        names.setdefault(id(pieces), f"sentencepiece.{len(names) + 1}.model")
        files[code] = names[id(pieces)]
    return files


def vocabulary_files(
    model: ModelConfig, tokenizer: MultilingualTokenizer, positions: int
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The JSON trees and the other files of a vocabulary, keyed by name.

    NMTError if no class of transformers can express it.
    """
    class_name = tokenizer_class(model, tokenizer)
    if class_name == UNIGRAM and tokenizer.extensions:
        raise fixed_languages(class_name)
    table = [*FAIRSEQ_SYMBOLS, *tokenizer.entries[len(SYMBOLS) :]]
    tags = [tokenizer.entries[id] for id in tokenizer.languages.values()]
    config = {
        "tokenizer_class": class_name,
        "src_lang": next(iter(tokenizer.languages)),
        "model_max_length": positions,
        "clean_up_tokenization_spaces": False,
    }
    trees: dict[str, Any] = {"tokenizer_config.json": config}
    if class_name in NUMBERED_BY_FILE:
        config["language_codes"] = language_list(tokenizer)
        first = min(tokenizer.languages.values())
        trees["vocab.json"] = {entry: id for id, entry in enumerate(table[:first])}
    else:
        config["extra_special_tokens"] = tags
        trees["tokenizer.json"] = fast_tokenizer(class_name, tokenizer, table, tags)
    # transformers encodes all languages with the same pieces.
    return trees, {SENTENCEPIECE: tokenizer.newest.model}


def language_list(tokenizer: MultilingualTokenizer) -> str:
    """The name of M2M100Tokenizer's list of languages."""
    ids = [*tokenizer.languages.values()]
    first = min(ids)
    for name, codes in LANGUAGE_LISTS.items():
        # The class computes ids: the tags follow the other entries, in the order of the list.
        is_in_order = ids == [*range(first, first + len(ids))]
        if is_in_order and [*tokenizer.languages] == codes:
            return name
    raise fixed_languages("M2M100Tokenizer")


def fixed_languages(class_name: str) -> NMTError:
    problem = f"{class_name} has a fixed list of languages, which the vocabulary does not match"
    return NMTError(f"format=huggingface: {problem}; use format=ctranslate2")


def fast_tokenizer(
    class_name: str, tokenizer: MultilingualTokenizer, table: list[str], tags: list[str]
) -> dict[str, Any]:
    """The tree of tokenizer.json.

    transformers takes the vocabulary, merges and normalization from it, and builds the rest anew.
    """
    proto = parse_sentencepiece(tokenizer.newest.model)
    table_of_special = [*FAIRSEQ_SYMBOLS, *tags]
    if "<mask>" in table:
        table_of_special.append("<mask>")
    number_of = {entry: id for id, entry in enumerate(table)}
    metaspace = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "always",
        "split": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            added_token(entry, number_of[entry])
            for entry in sorted(table_of_special, key=lambda entry: number_of[entry])
        ],
        "normalizer": normalizer(proto.normalizer_spec.precompiled_charsmap),
        "pre_tokenizer": metaspace,
        "post_processor": None,
        "decoder": metaspace,
        "model": unigram(proto, table) if class_name == UNIGRAM else bpe(proto, table),
    }


def added_token(entry: str, id: int) -> dict[str, Any]:
    return {
        "id": id,
        "content": entry,
        "single_word": False,
        # The text may have a blank before a mask.
        "lstrip": entry == "<mask>",
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def normalizer(charsmap: bytes) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if charsmap:
        table = b64encode(charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": table})
    steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return {"type": "Sequence", "normalizers": steps}


def unigram(proto: Any, table: list[str]) -> dict[str, Any]:
    """The library's model with the scores of a sentencepiece model; 0 for other entries."""
    scores = {piece.piece: piece.score for piece in proto.pieces}
    return {
        "type": "Unigram",
        "unk_id": FAIRSEQ_SYMBOLS.index("<unk>"),
        "vocab": [[entry, scores.get(entry, 0.0)] for entry in table],
        "byte_fallback": False,
    }


def bpe(proto: Any, table: list[str]) -> dict[str, Any]:
    """The library's model with the merges of a sentencepiece model.

    sentencepiece merges the neighbors whose concatenation has the highest score, so this lists
    every way to cut a subword into two, in the order of the scores.
    """
    entries = set(table)
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == piece.NORMAL}
    merges = []
    for piece, score in scores.items():
        for cut in range(1, len(piece)):
            left = piece[:cut]
            right = piece[cut:]
            if {left, right} <= scores.keys() and {left, right, piece} <= entries:
                # transformers prefers longer left parts.
                merges.append((score, len(left), [left, right]))
    merges.sort(key=lambda merge: merge[:2], reverse=True)
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {entry: id for id, entry in enumerate(table)},
        "merges": [pair for _, _, pair in merges],
    }
