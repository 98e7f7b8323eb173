"""`nmt score run=...`: log P of each translation, given its source, by a model or an ensemble; contrastive sets."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from rich.console import Console
from rich.status import Status

from nmt.errors import NMTError
from nmt.evaluation import ContrastivePair, Tally, read_contrast
from nmt.search import Pair, TorchEngine, forced_decoding
from nmt.text import SOURCE, TARGET, Tokenizer, parallel, read_texts
from nmt.translation.job import warn
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
    texts = [("".join(translator.split_tag(n, source)), target) for n, (source, target) in enumerate(pairs)]
    return encode_pairs(translator.tokenizer, texts)


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


def perplexity(log_probability: float, tokens: int) -> float:
    """exp(-log P(Y|X) / |Y|), at most e^700; |Y| counts the end symbol."""
    return math.exp(min(-log_probability / tokens, 700.0))


def read_pairs(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Pairs of lines of two files. NMTError for a missing file at once, for unequal line counts after the last pair."""
    pairs = parallel((source, target), (read_texts(source, warn), read_texts(target, warn)))
    return chain(list(islice(pairs, 1)), pairs)  # reads a line, which opens the files


def render(number: int, score: PairScore, format: str) -> str:
    """The output for the pair on line `number`, counted from 1."""
    length = len(score.token_log_probabilities)
    per_token = perplexity(score.log_probability, length)
    if format == "text":
        return f"{score.log_probability:10.4f}  perplexity {per_token:.4f}  {length} tokens\n"
    if format == "tsv":
        return f"{number}\t{score.log_probability:.4f}\t{per_token:.4f}\t{length}\n"
    record = {
        "line": number,
        "log_probability": score.log_probability,
        "perplexity": per_token,
        "length": length,
        **vars(score),
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def write_scores(translator: Translator, pairs: Iterator[tuple[str, str]], format: str, buffer: int) -> None:
    """Write the score of each pair to standard output, and the total to standard error."""
    count, tokens, log_probability = 0, 0, 0.0
    with Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())) as status:
        while block := list(islice(pairs, buffer)):
            for score in score_pairs(translator, block):
                count, tokens = count + 1, tokens + len(score.token_log_probabilities)
                log_probability += score.log_probability
                sys.stdout.buffer.write(render(count, score, format).encode())
            sys.stdout.buffer.flush()
            status.update(f"scored {count:,} pairs")
    if not count:
        warn("nothing to score: both files are empty")
        return
    total = f"log probability {log_probability:.4f}, perplexity {perplexity(log_probability, tokens):.4f}"
    warn(f"{count:,} pairs, {tokens:,} tokens, {total}")


def contrast_scores(translator: Translator, pairs: Sequence[ContrastivePair]) -> list[tuple[float, float]]:
    """log P of the right and of the wrong side of each pair; the same where both have the same tokens."""
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    sides = [(pair.source, side) for pair in pairs for side in (pair.right, pair.wrong)]
    keys = [(tuple(source), tuple(target)) for source, target in encode_tagged(translator, sides)]
    # Each once: log P differs by rounding from batch to batch, and often the right side stands against several others.
    unique = [(list(source), list(target)) for source, target in dict.fromkeys(keys)]
    scores = forced_decoding(engine.models, unique, engine.config.batch_tokens)
    found = dict(zip(dict.fromkeys(keys), (sum(score.log_probabilities) for score in scores), strict=True))
    return [(found[right], found[wrong]) for right, wrong in zip(keys[::2], keys[1::2], strict=True)]


def write_contrast(translator: Translator, name: str, format: str, buffer: int) -> None:
    """Write the share of pairs whose right side is likelier, by category, or with tsv the log P of each pair."""
    pairs = read_contrast(name)
    total, tallies = Tally("all pairs"), dict[str, Tally]()
    with Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())) as status:
        while block := list(islice(pairs, buffer)):
            for pair, scores in zip(block, contrast_scores(translator, block), strict=True):
                of_category = tallies.setdefault(pair.category, Tally(pair.category))
                for tally in (of_category, total):
                    tally.add(*scores)
                if format == "tsv":
                    right, wrong = scores
                    row = f"{total.pairs}\t{int(right > wrong)}\t{right:.4f}\t{wrong:.4f}\t{pair.category}\n"
                    sys.stdout.buffer.write(row.encode())
            sys.stdout.buffer.flush()
            status.update(f"scored {total.pairs:,} pairs")
    if not total.pairs:
        raise NMTError(f"{name}: no contrastive pairs: the file is empty")
    rows = [*(tally for category, tally in sorted(tallies.items()) if category), total]
    if format == "json":
        print(json.dumps([tally.record() for tally in rows], indent=2, ensure_ascii=False))
        return
    for tally in rows:
        print(tally, file=sys.stderr if format == "tsv" else sys.stdout)
