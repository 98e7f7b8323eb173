"""Folders of CTranslate2, which may come from anyone, with the tokenizer of their text.

What nmt exported has its tokenizer beside it. Others have sentencepiece.model for both languages, or source.spm and
target.spm.
"""

from pathlib import Path

import torch

from nmt.config import DecodeConfig, require
from nmt.files import expected_search, is_exported, read_description
from nmt.plugins.exchange.ctranslate2 import CTranslate2Program
from nmt.plugins.exchange.ctranslate2_load import tokenizer_beside
from nmt.plugins.exchange.ctranslate2_reader import CTranslate2Model, read_model
from nmt.plugins.exchange.foreign import Foreign
from nmt.plugins.exchange.marian_weights import tokenizer_of
from nmt.text import MARIAN_SYMBOLS, SYMBOLS, TAG, MarianTokenizer, Tokenizer
from nmt.translation import Translator

FEWEST_PIECES = 0.5
"""The share of a vocabulary that its sentencepiece models must know."""


def read_ctranslate2(folder: Path, sentencepiece: str | None) -> Foreign:
    """The model in a folder; NMTError where it is none that nmt reads.

    `sentencepiece` is the file of its model for both languages; None: it is in the folder.
    """
    model = read_model(folder)
    if is_exported(folder) and sentencepiece is None:
        description = read_description(folder)
        search = expected_search(DecodeConfig(), description)
        foreign = foreign_of(model, tokenizer_beside(folder, model))
        foreign.length_penalty = search.length_penalty
        foreign.length_penalty_kind = search.length_penalty_kind or "gnmt"
        foreign.languages, foreign.training = (description.source, description.target), description.training
        return foreign
    sides = [folder / "source.spm", folder / "target.spm"]
    if sentencepiece or not sides[0].exists():
        sides = [Path(sentencepiece) if sentencepiece else folder / "sentencepiece.model"] * 2
    there = all(path.exists() for path in sides)
    require(there, f"{sides[-1]}: not there; sentencepiece=FILE names the model that splits the text")
    return foreign_of(model, sentencepiece_tokenizer(model, sides))


def sentencepiece_tokenizer(model: CTranslate2Model, paths: list[Path]) -> MarianTokenizer:
    """The tokenizer of these sentencepiece models for a model; NMTError where they are those of another."""
    separate = model.config.source_vocabulary_size is not None
    tables = [side[len(SYMBOLS) :] for side in model.vocabularies[0 if separate else 1 :]]
    tags = any(TAG.fullmatch(entry) for entry in tables[0])
    tokenizer = tokenizer_of(paths, [[*MARIAN_SYMBOLS[:2], *table] for table in tables], tags)
    pieces = {part.id_to_piece(number) for part in tokenizer.processors for number in range(part.vocab_size())}
    for table in tables:
        count = sum(entry in pieces for entry in table)
        problem = f"{paths[-1]}: knows {count:,} of the {len(table):,} entries of the vocabulary; name the right one"
        require(count > FEWEST_PIECES * len(table), problem)
    return tokenizer


def foreign_of(model: CTranslate2Model, tokenizer: Tokenizer) -> Foreign:
    def program(decode: DecodeConfig) -> CTranslate2Program:
        from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine

        return CTranslate2Program(Translator(CTranslate2Engine(model, decode, "float32", threads=1), tokenizer))

    rounded = "" if model.precision == "float32" else f", dequantized from {model.precision}"
    weights = {name: torch.from_numpy(array) for name, array in model.weights.items()}
    origin = f"a model of CTranslate2{rounded}"
    return Foreign(origin, model.config, weights, tokenizer, package="ctranslate2", program=program)
