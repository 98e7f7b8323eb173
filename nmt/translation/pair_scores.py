"""Score given translations."""

from collections.abc import Sequence

from nmt.search import Pair
from nmt.text import SOURCE, TARGET, Tokenizer
from nmt.translation.alignment import PairScore
from nmt.translation.language_tags import untagged
from nmt.translation.stages import RefusedLine
from nmt.translation.translator import Translator

MOST_TOKENS = 4096
"""The tokens of the longer side of a pair to score if the model has no limit. The time grows with
the square of the length: four seconds for the smallest models on one core."""


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    """Encode sources, each with its tag, and targets."""
    sources = [tokenizer.clean(source, SOURCE) for source, _ in pairs]
    targets = [tokenizer.clean(target, TARGET) for _, target in pairs]
    encoded_sources = tokenizer.encode(sources, SOURCE)
    encoded_targets = tokenizer.encode(targets, TARGET)
    encoded = []
    for source, source_ids, target_ids in zip(
        sources, encoded_sources, encoded_targets, strict=True
    ):
        start = tokenizer.target_start(tokenizer.leading_tag(source))
        encoded.append((source_ids, start + target_ids))
    return encoded


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
    """Score given translations; a source without a tag gets the translator's source prefix.

    Raises RefusedLine for a pair that is too long.
    """
    encoded = encode_tagged(translator, pairs)
    longest = longest_scored(translator)
    for index, pair in enumerate(encoded):
        tokens = max(map(len, pair))
        if tokens > longest:
            problem = f"too long for the model: a side of {tokens:,} tokens (limit: {longest:,})"
            raise RefusedLine(index, problem)
    return score_encoded(translator, encoded)


def longest_scored(translator: Translator) -> int:
    """The largest number of tokens of a side of a pair that is scored."""
    limits = translator.limits
    return limits.positions or max(MOST_TOKENS, limits.longest or 0)


def score_short_pairs(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> list[PairScore | None]:
    """Like `score_pairs`, but None for pairs that are too long."""
    encoded = encode_tagged(translator, pairs)
    longest = longest_scored(translator)
    results: list[PairScore | None] = [None] * len(pairs)
    short = []
    for index, pair in enumerate(encoded):
        if max(map(len, pair)) <= longest:
            short.append(index)
    scores = score_encoded(translator, [encoded[index] for index in short])
    for index, score in zip(short, scores, strict=True):
        results[index] = score
    return results


def encode_tagged(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    """Encode pairs, whose sources may have tags; RefusedLine for a tag that the model lacks."""
    tokenizer = translator.tokenizer
    texts = list[tuple[str, str]]()
    for index, (source, target) in enumerate(pairs):
        line = untagged(source, tokenizer, default=translator.direction)
        if isinstance(line, RefusedLine):
            # `untagged` knows a single line, so the index is set here.
            raise RefusedLine(index, line.problem)
        prefix = line.tag or translator.source_prefix
        texts.append((prefix + line.text, target))
    return encode_pairs(tokenizer, texts)


def score_encoded(translator: Translator, encoded: Sequence[Pair]) -> list[PairScore]:
    """The scores of encoded pairs."""
    tokenizer = translator.tokenizer
    # Attention is not needed here, and would take memory for each pair of tokens.
    scores = translator.engine.token_scores(encoded, align=False)
    results = []
    # The tag of a target is given and has no score.
    given = int(tokenizer.has_target_tags)
    for (_, target_ids), score in zip(encoded, scores, strict=True):
        symbols = tokenizer.subwords(target_ids[given:])
        results.append(PairScore(symbols, score.log_probabilities[given:]))
    return results
