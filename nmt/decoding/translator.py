"""Lines to lines: normalise, encode, sort by length, search in batches, restore the order, decode."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config import EOS, PAD, DecodeConfig
from nmt.decoding.search import Hypothesis, beam_search
from nmt.model import Transformer
from nmt.text.tokenizers import Tokenizer, clean


@dataclass
class Translation:
    """One of a line's translations: its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float


def batches_by_length(lengths: list[int], budget: int) -> Iterator[list[int]]:
    """Places of items, shortest first, in batches of at most `budget` tokens with padding, at least one item each."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > budget:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def pad_source(sentences: list[list[int]], device: torch.device) -> Tensor:
    """Token ids -> [B, S], each sentence closed by the end symbol, then padding."""
    longest = max(map(len, sentences)) + 1
    rows = [ids + [EOS] + [PAD] * (longest - len(ids) - 1) for ids in sentences]
    return torch.tensor(rows, device=device)


class Translator:
    """A model with its tokenizer: raw text in, detokenised text out."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, config: DecodeConfig) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, the empty one."""
        sentences = self.tokenizer.encode([clean(line) for line in lines])
        results = [[Translation("", 0.0, 0.0)] for _ in lines]
        places = [place for place, ids in enumerate(sentences) if ids]
        device = next(self.model.parameters()).device
        training = self.model.training
        self.model.eval()
        try:
            for batch in batches_by_length([len(sentences[place]) + 1 for place in places], self.config.batch_tokens):
                chosen = [places[i] for i in batch]
                source_BS = pad_source([sentences[place] for place in chosen], device)
                for place, hypotheses in zip(chosen, beam_search(self.model, source_BS, self.config), strict=True):
                    results[place] = [self.decode(hypothesis) for hypothesis in hypotheses]
        finally:
            self.model.train(training)
        return results

    def decode(self, hypothesis: Hypothesis) -> Translation:
        # Bytes that spell a line end must not become one: line i answers line i.
        text = " ".join(self.tokenizer.decode(hypothesis.tokens).split())
        return Translation(text, hypothesis.score, hypothesis.log_probability)

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """Translations of a stream of lines, in order and as soon as can be.

        About twice `buffer` lines are in memory at most. What has arrived is translated together, not waiting for more.
        """
        for block in arriving_blocks(lines, buffer):
            yield from self.translate(block)


def arriving_blocks(lines: Iterable[str], size: int, patience: float = 0.05) -> Iterator[list[str]]:
    """Blocks of at most `size` lines: those that arrive within `patience` seconds of the first.

    An exception from `lines` is raised here, after the lines before it.
    """
    arrived: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=size)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    for first in iter(arrived.get, None):
        block, item = [], first
        deadline = time.monotonic() + patience
        while isinstance(item, str):
            block.append(item)
            if len(block) == size:
                break
            try:
                item = arrived.get(timeout=max(deadline - time.monotonic(), 0.001))
            except queue.Empty:
                break
        if block:
            yield block
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
