"""log P of translations that are given, by a model or an ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.errors import NMTError
from nmt.search import Pair, TorchEngine, forced_decoding
from nmt.text import SOURCE, TARGET, Tokenizer
from nmt.translation.stages import RefusedLine, split_tag
from nmt.translation.translator import Translator


@dataclass
class PairScore:
    """A translation's tokens, and the log probabilities of these and of the end symbol."""

    tokens: list[str]
    token_log_probabilities: list[float]

    @property
    def log_probability(self) -> float:
        return sum(self.token_log_probabilities)


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    """The tokens of pairs of source and target line."""
    sides = (tokenizer.encode([tokenizer.clean(pair[side]) for pair in pairs], side) for side in (SOURCE, TARGET))
    return list(zip(*sides, strict=True))


def encode_tagged(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    """The tokens of pairs, of which each source has the tag of its line, or that of the translator."""
    tokenizer, texts = translator.tokenizer, list[tuple[str, str]]()
    for index, (source, target) in enumerate(pairs):
        try:
            tag, text = split_tag(source, tokenizer)
        except NMTError as error:
            raise RefusedLine(index, str(error)) from error
        texts.append(((tag or translator.source_prefix) + text, target))
    return encode_pairs(tokenizer, texts)


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
    """The scores of pairs of source and target line, by the models of a translator."""
    engine, tokenizer = translator.engine, translator.tokenizer
    assert isinstance(engine, TorchEngine)
    encoded = encode_tagged(translator, pairs)
    scores = forced_decoding(engine.models, encoded, engine.config.batch_tokens)
    return [
        PairScore(tokenizer.subwords(target), score.log_probabilities)
        for (_, target), score in zip(encoded, scores, strict=True)
    ]
