"""Find the layer and step whose attention aligns words best: python benchmarks/alignment.py MODEL PREPARED [PAIRS]

There are no manual alignments for corpora of this size. Instead, the script uses the links that IBM model 1 finds in
both directions, with a preference for the diagonal. It prints the share of these links that each layer's mean attention
recovers, read at the step that outputs the target token or at the step that takes it as input.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from nmt.config import BOS
from nmt.data import PreparedSplit
from nmt.files import find_model_directory
from nmt.model import load_model
from nmt.plugins.results.attention_page import model_attention
from nmt.search import pad, pad_source

Pair = tuple[list[int], list[int]]


def best_sources(pairs: list[Pair], count: int, rounds: int = 6) -> list[np.ndarray]:
    """The source token that IBM model 1 links each target token of the first `count` pairs to."""

    def every(make):
        return np.concatenate([make(s, t) for s, t in pairs])

    sources = every(lambda s, t: np.repeat(s, len(t))).astype(np.int64)
    targets = every(lambda s, t: np.tile(t, len(s)))
    apart = every(
        lambda s, t: np.abs(
            np.arange(len(s))[:, None] / len(s) - np.arange(len(t)) / len(t)
        ).ravel()
    )
    first = np.cumsum([0] + [len(t) for _, t in pairs])
    place = np.concatenate(
        [
            np.tile(np.arange(b, e), len(s))
            for (s, _), b, e in zip(pairs, first, first[1:], strict=False)
        ]
    )
    links, link = np.unique(sources * 2**32 + targets, return_inverse=True)
    words = links // 2**32
    table = np.ones(len(links))
    for _ in range(rounds):
        weights = table[link] * np.exp(-4 * apart)
        counts = np.bincount(link, weights / np.bincount(place, weights)[place])
        table = counts / np.bincount(words, counts)[words]
    weights = table[link] * np.exp(-4 * apart)
    sizes = np.cumsum([len(s) * len(t) for s, t in pairs[:count]])
    parts = np.split(weights[: sizes[-1]], sizes[:-1])
    return [
        part.reshape(len(s), len(t)).argmax(0) for part, (s, t) in zip(parts, pairs, strict=False)
    ]


def main(name: str, prepared: str, count: int = 500) -> None:
    table = PreparedSplit(Path(prepared) / "train").table
    pairs: list[Pair] = list(
        zip(*(table.column(side).to_pylist() for side in ("source", "target")), strict=True)
    )
    forth, back = best_sources(pairs, count), best_sources([(t, s) for s, t in pairs], count)
    model, cpu = load_model(find_model_directory(name)), torch.device("cpu")
    hits, total = torch.zeros(len(model.decoder_layers), 2), 0
    for (source, target), sources, targets in zip(pairs, forth, back, strict=False):
        sure = [t for t, s in enumerate(sources) if targets[s] == t]
        attention = (
            model_attention(model, pad_source([source], cpu), pad([[BOS, *target]], cpu))
            .cross[0]
            .mean(1)
        )
        for step in (0, 1):
            best = attention[:, step : step + len(target), : len(source)].argmax(2)
            hits[:, step] += (best[:, sure] == torch.from_numpy(sources[sure])).sum(1)
        total += len(sure)
    print(f"{total} links in {count} pairs")
    for layer, (output, reading) in enumerate((hits / total).tolist(), 1):
        print(f"layer {layer}: as output {output:.3f}, as input {reading:.3f}")


main(*sys.argv[1:3], *map(int, sys.argv[3:]))
