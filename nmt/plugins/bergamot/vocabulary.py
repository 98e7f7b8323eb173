"""Vocabularies as the engine reads them: sentencepiece models in which </s> is 0 and <unk> is 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nmt.config import EOS, UNK, NMTError
from nmt.plugins.exchange.marian_vocabulary import rows_of
from nmt.plugins.exchange.normalization import sentencepiece_normalizer
from nmt.text import MarianTokenizer, SentencePieceTokenizer, Tokenizer

MULTIPLE = 8
"""The size of a vocabulary of the engine must be a multiple of this number."""
UNUSED = -1
"""The id that stands for pieces that pad a vocabulary, which nmt's vocabulary lacks."""


@dataclass
class Vocabulary:
    """A vocabulary of the engine."""

    model: Any
    """sentencepiece's ModelProto."""
    our_ids: list[int]
    """nmt's id for each id of the engine's vocabulary."""

    def pad(self) -> None:
        """Add unused pieces up to a multiple of MULTIPLE."""
        unused = self.model.SentencePiece.UNUSED
        for number in range(-len(self.our_ids) % MULTIPLE):
            # Of the type UNUSED, so that sentencepiece never splits text into one of them.
            self.model.pieces.add(piece=f"<unused{number}>", score=0.0, type=unused)
            self.our_ids.append(UNUSED)


def vocabularies(tokenizer: Tokenizer) -> list[Vocabulary]:
    """The vocabularies of the source and the target, or one for both."""
    # sentencepiece would split a tag like any text.
    if tokenizer.tags:
        tags = ", ".join(tokenizer.tags)
        raise NMTError(f"format=bergamot: the engine cannot translate sources with {tags}")
    if isinstance(tokenizer, SentencePieceTokenizer):
        result = [from_sentencepiece(tokenizer)]
    elif isinstance(tokenizer, MarianTokenizer):
        result = from_marian(tokenizer)
    else:
        advice = "pass experiment=bergamot to `nmt preprocess`"
        raise NMTError(f"format=bergamot needs a vocabulary of sentencepiece: {advice}")
    for vocabulary in result:
        vocabulary.pad()
    return result


def from_sentencepiece(tokenizer: SentencePieceTokenizer) -> Vocabulary:
    """A vocabulary of nmt without PAD and BOS, and with a table for its normalization."""
    model = tokenizer.parsed()
    # nmt's vocabularies begin with PAD, BOS, EOS and UNK. Marian's decoders start from zeros, and
    # its vocabularies have no symbol for padding.
    our_ids = [EOS, UNK, *range(UNK + 1, tokenizer.vocabulary_size)]
    pieces = [model.pieces[id] for id in our_ids]
    del model.pieces[:]
    model.pieces.extend(pieces)
    model.trainer_spec.eos_id = 0
    model.trainer_spec.unk_id = 1
    model.trainer_spec.bos_id = -1
    model.trainer_spec.pad_id = -1
    model.trainer_spec.vocab_size = len(pieces)
    # The engine cannot call our normalization, only sentencepiece's.
    normalizer = sentencepiece_normalizer(tokenizer.normalization)
    model.normalizer_spec.ParseFromString(normalizer.serialized_normalizer_spec())
    return Vocabulary(model, our_ids)


def from_marian(tokenizer: MarianTokenizer) -> list[Vocabulary]:
    """The sentencepiece models of an imported model, as they were."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
    # The same model twice is one vocabulary for both sides.
    # A dictionary, because it keeps the order of source and target.
    contents = dict.fromkeys(tokenizer.models)
    models = [proto.FromString(content) for content in contents]
    tables: Sequence[list[str]] = tokenizer.tables
    # A vocab.yml beside the models numbers the pieces in its own way, which the engine cannot read.
    if [[entry.piece for entry in model.pieces] for model in models] != [*tables]:
        raise NMTError(
            "format=bergamot: the model has a vocab.yml, but the engine needs the numbers of its "
            ".spm files; train with experiment=bergamot"
        )
    result = []
    for model, table in zip(models, tables, strict=True):
        rows = rows_of(table, has_padding=False)
        # The inverse of the order in which the model was imported.
        our_ids = [rows.index(row) for row in range(len(table))]
        result.append(Vocabulary(model, our_ids))
    return result
