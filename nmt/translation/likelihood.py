"""`nmt score model=...`: the log probability of each translation of a file, given its source, by a model or several."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, BinaryIO

from rich.console import Console
from rich.status import Status

from nmt.errors import NMTError
from nmt.model_directory.weights import load_model
from nmt.search.engine import Judgement
from nmt.search.forced_decoding import force
from nmt.text.files import open_text, raw_lines
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.job import input_lines, warn
from nmt.translation.load import choose_device, find_models


@dataclass
class Total:
    """What was scored so far; `tokens` count end symbols."""

    pairs: int = 0
    tokens: int = 0
    log_probability: float = 0.0

    def add(self, judged: Judgement) -> None:
        self.pairs += 1
        self.tokens += len(judged.log_probabilities)
        self.log_probability += sum(judged.log_probabilities)

    def __str__(self) -> str:
        if not self.pairs:
            return "nothing to score: both files are empty"
        return (
            f"{self.pairs:,} pairs, {self.tokens:,} tokens, log probability {self.log_probability:.4f}, "
            f"perplexity {perplexity(self.log_probability, self.tokens):.4f}"
        )


def perplexity(log_probability: float, tokens: int) -> float:
    """exp(-log P(Y|X) / |Y|), at most e^700; |Y| counts the end symbol."""
    return math.exp(min(-log_probability / tokens, 700.0))


def text_lines(name: str, file: BinaryIO) -> Iterator[str]:
    """The lines of a file; NMTError where it cannot be read to its end."""
    return input_lines(raw_lines(file, name), notice=lambda words: warn(f"{name}, {words}"))


def read_pairs(names: tuple[str, str], files: tuple[BinaryIO, BinaryIO]) -> Iterator[tuple[str, str]]:
    """Lines of the same number; NMTError with both counts behind the last, where these differ."""
    sides = [text_lines(name, file) for name, file in zip(names, files, strict=True)]
    counts = [0, 0]
    for source, target in zip_longest(*sides):
        counts = [count + (line is not None) for count, line in zip(counts, (source, target), strict=True)]
        if counts[0] == counts[1]:
            yield source, target
    if counts[0] != counts[1]:
        raise NMTError(f"{names[0]} has {counts[0]} lines but {names[1]} has {counts[1]}: line i must answer line i")


def render(number: int, target: list[int], judged: Judgement, tokenizer: Tokenizer, format: str) -> str:
    """The output for the pair on line `number`, counted from 1."""
    tokens = len(judged.log_probabilities)
    log_probability = sum(judged.log_probabilities)
    per_token = perplexity(log_probability, tokens)
    if format == "text":
        return f"{log_probability:10.4f}  perplexity {per_token:.4f}  {tokens} tokens\n"
    if format == "tsv":
        return f"{number}\t{log_probability:.4f}\t{per_token:.4f}\t{tokens}\n"
    record = {
        "line": number,
        "log_probability": log_probability,
        "perplexity": per_token,
        "length": tokens,
        "tokens": tokenizer.subwords(target),
        "token_log_probabilities": judged.log_probabilities,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def score_pairs(config: Any) -> None:
    """Write what the models think of each pair to standard output, and of all of them to standard error.

    Raises NMTError where a model or file is missing, or the files have different numbers of lines.
    """
    assert config.source is not None
    folders, _, tokenizer = find_models(config.run)
    device, total = choose_device(config.device), Total()
    with ExitStack() as stack:
        names = config.source, config.hypothesis
        pairs = read_pairs(names, (stack.enter_context(open_text(names[0])), stack.enter_context(open_text(names[1]))))
        models = [load_model(folder, device) for folder in folders]
        status = stack.enter_context(Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())))
        while block := list(islice(pairs, config.buffer)):
            sources, targets = (tokenizer.encode([clean(line) for line in side]) for side in zip(*block, strict=True))
            judged = force(models, list(zip(sources, targets, strict=True)), config.batch_tokens)
            for target, judgement in zip(targets, judged, strict=True):
                total.add(judgement)
                text = render(total.pairs, target, judgement, tokenizer, config.format)
                sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
            status.update(f"scored {total.pairs:,} pairs")
    print(f"nmt: {total}", file=sys.stderr)
