"""Read the vocabularies of M2M-100, NLLB, SMaLL-100 and mBART-50, from untrusted folders:

sentencepiece.bpe.model  the sentencepiece model
vocab.json               numbers of the pieces (M2M-100 and SMaLL-100)
tokenizer.json           pieces, numbers and tags of languages, in the format of tokenizers
tokenizer_config.json    tags of languages
special_tokens_map.json  tags of languages
added_tokens.json        numbers of tags that were added later

Their ids are fairseq's: <s>, <pad>, </s> and <unk> are 0 to 3, the pieces follow, and then the tags
of languages.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import NMTError, one_line
from nmt.plugins.exchange.hub_settings import read_settings
from nmt.text import (
    BOTH_SIDES,
    MULTILINGUAL_KEY,
    ONLY_SOURCE,
    MultilingualTokenizer,
    parse_sentencepiece,
)

SENTENCEPIECE = "sentencepiece.bpe.model"
NUMBERED_BY_FILE = ("M2M100Tokenizer", "SMALL100Tokenizer")
"""The classes of tokenizers that read vocab.json, and number the tags of languages after it."""
"""The name of the file with the sentencepiece model."""
FAIRSEQ_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
"""The first entries of a vocabulary of fairseq, in their order."""
OUR_ORDER = (1, 0, 2, 3)
"""The number in FAIRSEQ_SYMBOLS of PAD, BOS, EOS and UNK."""
LANGUAGE_TOKEN = re.compile(
    r"__(?P<short>[a-z]{2,3})__|(?P<code>[a-z]{2,3}(?:_[A-Z][A-Za-z]{1,3})?)"
)
"""A tag of a language: __en__ in M2M-100, eng_Latn in NLLB, en_XX in mBART-50."""
M2M_100 = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi
hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns
oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh
zu
"""
"""The languages of M2M-100, in the order of their ids. Newer files only say `m2m100`."""
LANGUAGE_LISTS = {
    "m2m100": M2M_100.split(),
    "wmt21": ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"],
}
"""The values of `language_codes` in tokenizer_config.json."""


@dataclass(frozen=True)
class FairseqVocabulary:
    """The vocabulary of a folder."""

    model: bytes
    """The sentencepiece model."""
    table: list[str]
    """The entries in fairseq's order."""
    languages: dict[str, str]
    """Language codes and their entries."""

    def tokenizer(self, has_target_tags: bool) -> MultilingualTokenizer:
        """The tokenizer whose first ids are PAD, BOS, EOS and UNK; raises ValueError."""
        tree = {
            MULTILINGUAL_KEY: 1,
            "tagged": BOTH_SIDES if has_target_tags else ONLY_SOURCE,
            "languages": self.languages,
            "model": b64encode(self.model).decode(),
            "entries": self.table[len(FAIRSEQ_SYMBOLS) :],
        }
        return MultilingualTokenizer(json.dumps(tree, ensure_ascii=False).encode())


def read_vocabulary(folder: Path, size: int) -> FairseqVocabulary:
    """The vocabulary of a folder whose model has `size` entries.

    NMTError if it cannot be read, or does not fit the model.
    """
    trees = trees_of(folder)
    class_name = trees["tokenizer_config"].get("tokenizer_class")
    if class_name in NUMBERED_BY_FILE and not trees["vocab"]:
        raise NMTError(f"{folder}: has no vocab.json, which numbers the subwords of {class_name}")
    try:
        model = sentencepiece_model(folder, trees)
        numbers = numbers_of(model, trees)
        add_languages(numbers, trees)
        table = table_of(numbers, size)
    except NMTError:
        raise
    except Exception as error:  # the library raises bare RuntimeError; a tree may have any form
        raise NMTError(f"{folder}: cannot read its vocabulary ({one_line(error)})") from error
    languages = dict(languages_in(special_tokens(trees), numbers))
    if not languages:
        raise NMTError(f"{folder}: its tokenizer names no languages")
    return FairseqVocabulary(model, table, languages)


def trees_of(folder: Path) -> dict[str, Any]:
    """The content of each JSON file that a folder has, by its name without .json."""
    names = ("vocab", "tokenizer", "tokenizer_config", "special_tokens_map", "added_tokens")
    return {name: read_settings(folder / f"{name}.json") for name in names}


def sentencepiece_model(folder: Path, trees: dict[str, Any]) -> bytes:
    """The sentencepiece model; if the file is missing, one with the pieces of tokenizer.json."""
    path = folder / SENTENCEPIECE
    if path.exists():
        content = files.read_bytes(path)
        if not content:
            raise NMTError(f"{path}: is empty")
        return content
    if not trees["tokenizer"]:
        raise NMTError(f"{folder}: contains neither {path.name} nor tokenizer.json")
    return converted_model(trees["tokenizer"])


def converted_model(tree: dict[str, Any]) -> bytes:
    """A sentencepiece model with the pieces, scores and normalization of a tokenizer.json."""
    from sentencepiece import sentencepiece_model_pb2

    library: Any = sentencepiece_model_pb2
    model = library.ModelProto()
    kind = tree["model"]["type"]
    spec = model.trainer_spec
    spec.model_type = spec.UNIGRAM if kind == "Unigram" else spec.BPE
    # sentencepiece's own default, with which these models were trained.
    spec.unk_id = 0
    spec.bos_id = 1
    spec.eos_id = 2
    spec.pad_id = -1
    for symbol, type_of_piece in (("<unk>", "UNKNOWN"), ("<s>", "CONTROL"), ("</s>", "CONTROL")):
        piece = library.ModelProto.SentencePiece
        model.pieces.add(piece=symbol, score=0.0, type=getattr(piece, type_of_piece))
    added = {token["content"] for token in tree.get("added_tokens", ())}
    for piece, score in scored_pieces(tree["model"]):
        if piece not in added and piece not in FAIRSEQ_SYMBOLS:
            model.pieces.add(piece=piece, score=score)
    model.normalizer_spec.precompiled_charsmap = charsmap_of(tree.get("normalizer"))
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = True
    content: bytes = model.SerializeToString()
    return content


def scored_pieces(model: dict[str, Any]) -> list[tuple[str, float]]:
    """The pieces of a model of the tokenizers library, in the order of their ids, and scores."""
    if model["type"] == "Unigram":
        return [(str(piece), float(score)) for piece, score in model["vocab"]]
    # sentencepiece merges the pair whose result has the highest score first.
    scores = dict[str, float]()
    for rank, merge in enumerate(model["merges"]):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        scores.setdefault(left + right, -float(rank))
    vocabulary: dict[str, int] = model["vocab"]
    ordered = sorted(vocabulary, key=lambda piece: vocabulary[piece])
    # Characters are no results of merges, and come after all of them.
    return [(piece, scores.get(piece, -float(len(model["merges"])))) for piece in ordered]


def charsmap_of(normalizer: Any) -> bytes:
    """The compiled table of a normalizer of the tokenizers library; empty if it has none."""
    if not isinstance(normalizer, dict):
        return b""
    if normalizer.get("type") == "Precompiled":
        return b64decode(normalizer["precompiled_charsmap"], validate=True)
    for part in normalizer.get("normalizers", ()):
        table = charsmap_of(part)
        if table:
            return table
    return b""


def numbers_of(model: bytes, trees: dict[str, Any]) -> dict[str, int]:
    """Entries and their numbers in fairseq's order."""
    if trees["vocab"]:
        return {entry: int(number) for entry, number in trees["vocab"].items()}
    tokenizer = trees["tokenizer"].get("model", {})
    vocabulary = tokenizer.get("vocab")
    if isinstance(vocabulary, dict):
        return {entry: int(number) for entry, number in vocabulary.items()}
    if isinstance(vocabulary, list):
        return {str(entry): number for number, (entry, _) in enumerate(vocabulary)}
    # fairseq's symbols replace the three of sentencepiece.
    pieces = [piece.piece for piece in parse_sentencepiece(model).pieces[3:]]
    return {entry: number for number, entry in enumerate([*FAIRSEQ_SYMBOLS, *pieces])}


def special_tokens(trees: dict[str, Any]) -> dict[str, int | None]:
    """The special tokens that the files list, in their order, and the numbers of some of them."""
    tokens = dict[str, int | None]()
    config = trees["tokenizer_config"]
    for code in LANGUAGE_LISTS.get(str(config.get("language_codes")), ()):
        tokens[f"__{code}__"] = None
    for tree in (trees["special_tokens_map"], config):
        for key in ("additional_special_tokens", "extra_special_tokens"):
            for token in as_sequence(tree.get(key)):
                tokens.setdefault(content_of(token), None)
    for token in added_tokens(trees):
        tokens[content_of(token)] = int(token["id"])
    for number, token in config.get("added_tokens_decoder", {}).items():
        tokens[content_of(token)] = int(number)
    for name, number in trees["added_tokens"].items():
        tokens[name] = int(number)
    return tokens


def as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def content_of(token: Any) -> str:
    """The text of a token, which a file may describe by a mapping."""
    return str(token["content"] if isinstance(token, dict) else token)


def added_tokens(trees: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """The special tokens in tokenizer.json."""
    tokens = as_sequence(trees["tokenizer"].get("added_tokens"))
    return [token for token in tokens if token.get("special")]


def add_languages(numbers: dict[str, int], trees: dict[str, Any]) -> None:
    """Add the special tokens to the numbers of a vocabulary.

    Those without a number follow the vocabulary, in the order of the files.
    """
    following = max(numbers.values(), default=-1) + 1
    for token, number in special_tokens(trees).items():
        if number is not None:
            numbers[token] = number
        elif token not in numbers and LANGUAGE_TOKEN.fullmatch(token):
            numbers[token] = following
            following += 1


def table_of(numbers: dict[str, int], size: int) -> list[str]:
    """The entries in the order of their numbers; NMTError if they do not fit `size` numbers.

    Numbers without an entry get names that no text has.
    """
    entries = dict[int, str]()
    for entry, number in numbers.items():
        if not 0 <= number < size:
            raise NMTError(f"the vocabulary numbers {entry[:40]!r} {number}, of {size:,} entries")
        if number in entries:
            raise NMTError(f"the vocabulary has two entries with the number {number}")
        entries[number] = entry
    table = [entries.get(number, f"<unused{number}>") for number in range(size)]
    if tuple(table[: len(FAIRSEQ_SYMBOLS)]) != FAIRSEQ_SYMBOLS:
        raise NMTError(f"the vocabulary does not begin with {' '.join(FAIRSEQ_SYMBOLS)}")
    return table


def languages_in(
    tokens: dict[str, int | None], numbers: dict[str, int]
) -> Iterator[tuple[str, str]]:
    """The codes and entries of the tags among special tokens."""
    for token in tokens:
        match = LANGUAGE_TOKEN.fullmatch(token)
        if match and token in numbers:
            yield match["short"] or match["code"], token
