"""Add noise to parallel text, score it with a model, and measure what each minimum keeps.

    python benchmarks/filtering.py RUN SOURCE TARGET [PAIRS]

Of PAIRS pairs (10,000 by default), drawn at random, 10% get the target of another pair, 5% get
French sentences as target, and 5% get a copy of the source. Precision is the share of good pairs
among the kept ones, and recall is the share of the good pairs that are kept.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

GOOD = "good"
SHUFFLED = "other target"
FOREIGN = "French"
COPY = "copy"
SHARES = {SHUFFLED: 0.10, FOREIGN: 0.05, COPY: 0.05}
FRENCH = (
    "Nous partons demain matin de bonne heure.",
    "Le train arrive toujours en retard.",
    "Elle a perdu les clés de sa voiture.",
    "Pourquoi n'as-tu rien dit hier ?",
    "Les enfants jouent dans la cour.",
    "Il faut fermer la fenêtre avant de sortir.",
    "Je voudrais un café, s'il vous plaît.",
)
QUANTILES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
"""Each minimum drops about this share of the pairs."""


@dataclass
class Pair:
    source: str
    target: str
    label: str = GOOD
    score: float = 0.0


def read_pairs(source: Path, target: Path, count: int) -> list[Pair]:
    """Pairs drawn at random, which are the same in each run."""
    sources = source.read_text(encoding="utf-8").split("\n")
    targets = target.read_text(encoding="utf-8").split("\n")
    texts = []
    for pair in zip(sources, targets, strict=True):
        # A tab would separate columns.
        if all(pair) and "\t" not in "".join(pair):
            texts.append(pair)
    drawn = random.Random(1).sample(texts, min(count, len(texts)))
    return [Pair(source, target) for source, target in drawn]


def add_noise(pairs: list[Pair]) -> None:
    draw = random.Random(2)
    order = draw.sample(pairs, len(pairs))
    for label, share in SHARES.items():
        count = round(share * len(pairs))
        chosen = order[:count]
        order = order[count:]
        targets = [pair.target for pair in chosen]
        for index, pair in enumerate(chosen):
            pair.label = label
            if label == SHUFFLED:
                pair.target = targets[index - 1]
            elif label == FOREIGN:
                pair.target = draw.choice(FRENCH)
            else:
                pair.target = pair.source


def score(run: str, pairs: list[Pair]) -> None:
    """Score the pairs with `nmt score`, whose last lines are printed."""
    with tempfile.TemporaryDirectory() as folder:
        noisy = Path(folder, "noisy.tsv")
        scored = Path(folder, "scored.tsv")
        lines = [f"{pair.source}\t{pair.target}\n" for pair in pairs]
        noisy.write_text("".join(lines), encoding="utf-8")
        command = ["score", f"run={run}", f"input={noisy}", f"output={scored}"]
        subprocess.run([sys.executable, "-m", "nmt", *command], check=True)
        rows = scored.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    for pair, row in zip(pairs, rows, strict=True):
        # A pair that is too long has no score, and no minimum keeps it.
        pair.score = float(row.split("\t")[2] or "-inf")


def report(pairs: list[Pair]) -> None:
    labels = [GOOD, *SHARES]
    print("| `minimum` | kept | precision | recall | " + " | ".join(labels[1:]) + " |")
    print("|---" * (4 + len(SHARES)) + "|")
    scores = sorted(pair.score for pair in pairs)
    for quantile in QUANTILES:
        minimum = round(scores[int(quantile * len(scores))], 1)
        kept = [pair for pair in pairs if pair.score >= minimum]
        shares = {}
        for label in labels:
            of_label = [pair for pair in pairs if pair.label == label]
            count = sum(pair.score >= minimum for pair in of_label)
            shares[label] = count / max(1, len(of_label))
        good = sum(pair.label == GOOD for pair in kept)
        cells = [f"{minimum:.1f}", f"{len(kept) / len(pairs):.0%}"]
        cells += [f"{good / max(1, len(kept)):.1%}"]
        cells += [f"{share:.0%}" for share in shares.values()]
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("pairs", type=int, nargs="?", default=10_000)
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.source, arguments.target, arguments.pairs)
    add_noise(pairs)
    score(arguments.run, pairs)
    report(pairs)


if __name__ == "__main__":
    main()
