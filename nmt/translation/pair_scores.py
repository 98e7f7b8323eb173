"""Score given translations."""

from collections.abc import Sequence

from nmt.search import Pair
from nmt.text import SOURCE, TARGET, Tokenizer
from nmt.translation.alignment import PairScore
from nmt.translation.language_tags import untagged
from nmt.translation.stages import RefusedLine
from nmt.translation.translator import Translator


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
    """Score given translations; a source without a tag gets the translator's source prefix."""
    return score_encoded(translator, encode_tagged(translator, pairs))


def score_short_pairs(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> list[PairScore | None]:
    """Like `score_pairs`, but None for pairs with more tokens than the model has positions for."""
    encoded = encode_tagged(translator, pairs)
    positions = translator.limits.positions
    results: list[PairScore | None] = [None] * len(pairs)
    short = []
    for index, pair in enumerate(encoded):
        if positions is None or max(map(len, pair)) <= positions:
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
