"""`nmt score run=...`: the log probability of each translation of a file, given its source, by a model or several."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from rich.console import Console
from rich.status import Status

from nmt.model import Transformer
from nmt.model_directory.weights import load_model
from nmt.search.forced_decoding import forced_decoding
from nmt.text.files import parallel, read_lines
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.job import decode_or_replace, warn
from nmt.translation.load import choose_device, find_models


@dataclass
class PairScore:
    """A translation's tokens and their log probabilities, the end symbol's last."""

    tokens: list[str]
    token_log_probabilities: list[float]

    @property
    def log_probability(self) -> float:
        return sum(self.token_log_probabilities)

    @property
    def length(self) -> int:
        return len(self.token_log_probabilities)


@dataclass
class PairScorer:
    """A model, or an ensemble, that scores translations of raw lines."""

    models: Sequence[Transformer]
    tokenizer: Tokenizer
    batch_tokens: int

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The scores of translations, given their sources: pairs of source and target line."""
        sources, targets = (self.tokenizer.encode([clean(pair[side]) for pair in pairs]) for side in (0, 1))
        scores = forced_decoding(self.models, list(zip(sources, targets, strict=True)), self.batch_tokens)
        return [
            PairScore(self.tokenizer.subwords(target), score.log_probabilities)
            for target, score in zip(targets, scores, strict=True)
        ]


def load_scorer(runs: list[str], device: str, batch_tokens: int) -> PairScorer:
    """Load the models of runs; NMTError where one is missing, or they have different vocabularies."""
    folders, _, tokenizer = find_models(runs)
    device = choose_device(device)
    return PairScorer([load_model(folder, device) for folder in folders], tokenizer, batch_tokens)


def perplexity(log_probability: float, tokens: int) -> float:
    """exp(-log P(Y|X) / |Y|), at most e^700; |Y| counts the end symbol."""
    return math.exp(min(-log_probability / tokens, 700.0))


def read_pairs(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Lines of the same number; NMTError behind the last, where their counts differ, and at once for a missing file."""
    pairs = parallel((source, target), (read_lines(source), read_lines(target)))
    pairs = chain(list(islice(pairs, 1)), pairs)

    def text(name: str, number: int, line: bytes) -> str:
        return decode_or_replace(line, f"{name}, line {number}", warn)

    return ((text(source, n, one), text(target, n, other)) for n, (one, other) in enumerate(pairs, 1))


def render(number: int, score: PairScore, format: str) -> str:
    """The output for the pair on line `number`, counted from 1."""
    per_token = perplexity(score.log_probability, score.length)
    if format == "text":
        return f"{score.log_probability:10.4f}  perplexity {per_token:.4f}  {score.length} tokens\n"
    if format == "tsv":
        return f"{number}\t{score.log_probability:.4f}\t{per_token:.4f}\t{score.length}\n"
    record = {
        "line": number,
        "log_probability": score.log_probability,
        "perplexity": per_token,
        "length": score.length,
        "tokens": score.tokens,
        "token_log_probabilities": score.token_log_probabilities,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def score_pairs(scorer: PairScorer, pairs: Iterator[tuple[str, str]], format: str, buffer: int) -> None:
    """Write the score of each pair to standard output, and that of all of them to standard error."""
    count, tokens, log_probability = 0, 0, 0.0
    with Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())) as status:
        while block := list(islice(pairs, buffer)):
            for score in scorer.score(block):
                count, tokens = count + 1, tokens + score.length
                log_probability += score.log_probability
                sys.stdout.buffer.write(render(count, score, format).encode())
            sys.stdout.buffer.flush()
            status.update(f"scored {count:,} pairs")
    if not count:
        warn("nothing to score: both files are empty")
        return
    total = f"log probability {log_probability:.4f}, perplexity {perplexity(log_probability, tokens):.4f}"
    warn(f"{count:,} pairs, {tokens:,} tokens, {total}")
