"""Damage clean corpora, and measure the check and the filters of `nmt preprocess`.

    python benchmarks/corpus_alarm.py FOLDER ... [--foreign FILE] [--pairs N] [--rates 0.01 0.05 0.2]
        [--cells KIND:RATE ...] [--train UPDATES --similarity 0.35 --cache FOLDER]

Each FOLDER has train.en and train.LANGUAGE. For each kind of damage and each rate, that share of
the pairs is damaged (seed 1), and the check inspects its sample. The tables have the kinds that the
check reports, and precision, recall and lost good pairs of data.filters.similarity at the value that
the check advises (without a notice, at the value it would advise), alone and together with
data.filters.languages, measured on the sample.

--train instead trains a small model with and without both filters for each cell, and prints
BLEU on FOLDER/test, validated on FOLDER/valid. Finished cells are kept in the cache.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from nmt.config import DataConfig
from nmt.preparation import fits
from nmt.preparation.damage import advised_similarity, shares_of
from nmt.preparation.meanings import PART_PAIRS, Inspected, Meanings, spread_rows
from nmt.preparation.suspicions import Suspicions
from nmt.text import BLOCK_PAIRS, Pair, sentence_vectors

SEED = 1
CLEAN = "clean"
MIXED = "all kinds"
SETTINGS = (
    "experiment=quickstart",
    "tokenizer=bpe4k",
    "trainer.accelerator=cpu",
    "checkpoints.every_minutes=null",
)


@dataclass
class Corpus:
    folder: Path
    language: str
    """Of the targets; the sources are English."""
    pairs: list[Pair]
    foreign: list[str]
    """Lines in a third language; parallel to the pairs if the folder has them."""


def read_lines(path: Path, count: int | None) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1][:count]


def read_corpus(folder: Path, foreign: Path | None, count: int | None) -> Corpus:
    names = sorted(path.suffix[1:] for path in folder.glob("train.??"))
    language = next(name for name in names if name != "en")
    sources = read_lines(folder / "train.en", count)
    targets = read_lines(folder / f"train.{language}", count)
    third = [name for name in names if name not in ("en", language)]
    if third:
        lines = read_lines(folder / f"train.{third[0]}", count)
    else:
        lines = read_lines(foreign, count) if foreign else []
    return Corpus(folder, language, list(zip(sources, targets, strict=True)), lines)


def first_half(text: str) -> str:
    words = text.split()
    return " ".join(words[: (len(words) + 1) // 2])


def second_half(text: str) -> str:
    words = text.split()
    return " ".join(words[(len(words) + 1) // 2 :])


def unrelated(corpus: Corpus, rows: Sequence[int]) -> dict[int, Pair]:
    """The targets of the damaged pairs, shuffled among themselves."""
    others = [*rows[1:], *rows[:1]]
    return {
        row: (corpus.pairs[row][0], corpus.pairs[other][1])
        for row, other in zip(rows, others, strict=True)
    }


def shifted(corpus: Corpus, rows: Sequence[int]) -> dict[int, Pair]:
    """Runs of 1,000 pairs or fewer whose targets are shifted by one line."""
    damaged = {}
    left = len(rows)
    for start in sorted(rows):
        length = min(left, 1000)
        if length <= 0:
            break
        if start + length < len(corpus.pairs) and start not in damaged:
            for row in range(start, start + length):
                damaged[row] = (corpus.pairs[row][0], corpus.pairs[row + 1][1])
            left -= length
    return damaged


def changed(
    corpus: Corpus, rows: Sequence[int], change: Callable[[Corpus, int], Pair]
) -> dict[int, Pair]:
    return {row: change(corpus, row) for row in rows}


def swap(corpus: Corpus, row: int) -> Pair:
    source, target = corpus.pairs[row]
    return target, source


def make_foreign(corpus: Corpus, row: int) -> Pair:
    return corpus.pairs[row][0], corpus.foreign[row % len(corpus.foreign)]


def copy(corpus: Corpus, row: int) -> Pair:
    source, _ = corpus.pairs[row]
    return source, source


def cut(corpus: Corpus, row: int) -> Pair:
    source, target = corpus.pairs[row]
    return source, first_half(target)


def leave_half(corpus: Corpus, row: int) -> Pair:
    source, target = corpus.pairs[row]
    return source, f"{first_half(target)} {second_half(source)}"


Damage = Callable[[Corpus, Sequence[int]], dict[int, Pair]]
DAMAGES: dict[str, Damage] = {
    "unrelated": unrelated,
    "shifted": shifted,
    "cut to half": partial(changed, change=cut),
    "half left": partial(changed, change=leave_half),
    "copied": partial(changed, change=copy),
    "swapped": partial(changed, change=swap),
    "third language": partial(changed, change=make_foreign),
}


def damaged_pairs(corpus: Corpus, kind: str, rate: float) -> dict[int, Pair]:
    """Row -> the damaged pair; pairs that a kind leaves as they are do not count as damaged."""
    if kind == CLEAN:
        return {}
    chance = random.Random(SEED)
    rows = chance.sample(range(len(corpus.pairs)), round(rate * len(corpus.pairs)))
    if kind == MIXED:
        possible = [name for name in DAMAGES if corpus.foreign or name != "third language"]
        damaged: dict[int, Pair] = {}
        for number, name in enumerate(possible):
            damaged |= DAMAGES[name](corpus, rows[number :: len(possible)])
    else:
        damaged = DAMAGES[kind](corpus, rows)
    return {row: pair for row, pair in damaged.items() if pair != corpus.pairs[row]}


def with_damage(corpus: Corpus, damaged: dict[int, Pair]) -> list[Pair]:
    return [damaged.get(row, pair) for row, pair in enumerate(corpus.pairs)]


class RememberedVectors:
    """Encodes each text once, because most texts are the same in all cells."""

    def __init__(self) -> None:
        self.vectors: dict[str, fits.Values] = {}

    def __call__(self, texts: Sequence[str]) -> fits.Values:
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        self.vectors |= dict(zip(missing, sentence_vectors(missing), strict=True))
        if not texts:
            return sentence_vectors([])
        return np.stack([self.vectors[text] for text in texts])


def suspicions_of(pairs: list[Pair], language: str) -> Suspicions:
    """What `nmt preprocess` suspects of training pairs."""
    suspicions = Suspicions(DataConfig(name="x", kind="files", source="en", target=language))
    for start in range(0, len(pairs), BLOCK_PAIRS):
        block = pairs[start : start + BLOCK_PAIRS]
        suspicions.inspect(block, suspicions.next_sample(), start + 1)
    rows = spread_rows(len(pairs)).tolist()
    for start in range(0, len(rows), PART_PAIRS):
        part = Meanings("en", language)
        part.inspect([(row + 1, pairs[row]) for row in rows[start : start + PART_PAIRS]])
        suspicions.meanings.merge(part)
    return suspicions


def measure(corpus: Corpus, kind: str, rate: float) -> str:
    """A row of the table."""
    damaged = damaged_pairs(corpus, kind, rate)
    suspicions = suspicions_of(with_damage(corpus, damaged), corpus.language)
    meanings = suspicions.meanings
    known = suspicions.known_kinds()
    others = suspicions.other_meanings()
    shares = [share for share in shares_of(others) if share.kind not in known]
    kinds = [f"{share.kind.name} {share.share:.1%}" for share in shares]
    # Notices about the corpus as a whole, which nmt prints as well.
    kinds += [f"({notice.split(':')[0]:.60})" for notice in suspicions.notices()]
    least = advised_similarity(meanings)
    cells = [
        corpus.folder.name,
        kind,
        f"{rate:.0%}",
        ", ".join(kinds) or "none",
        f"{least:g}",
        filter_in_words(meanings, damaged, lambda pair: pair.fit < least),
        filter_in_words(meanings, damaged, lambda pair: pair.fit < least or pair.is_foreign),
    ]
    return f"| {' | '.join(cells)} |"


def filter_in_words(
    meanings: Meanings, damaged: dict[int, Pair], is_dropped: Callable[[Inspected], bool]
) -> str:
    """Precision, recall and lost good pairs of a filter on the sample."""
    dropped = [pair for pair in meanings.pairs if is_dropped(pair)]
    bad = sum(pair.number - 1 in damaged for pair in meanings.pairs)
    hits = sum(pair.number - 1 in damaged for pair in dropped)
    lost = (len(dropped) - hits) / max(1, len(meanings.pairs) - bad)
    if not bad:
        return f"- / - / {lost:.1%}"
    return f"{hits / max(1, len(dropped)):.0%} / {hits / bad:.0%} / {lost:.1%}"


@dataclass
class Training:
    updates: int
    least: float
    """The value of data.filters.similarity."""
    cache: Path


def run_nmt(*words: str) -> str:
    command = [sys.executable, "-m", "nmt", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def bleu_of(corpus: Corpus, kind: str, rate: float, least: float | None, training: Training) -> str:
    """BLEU on the test set after training on the damaged corpus, or its cached value."""
    name = f"{corpus.folder.name}-{kind}-{rate:g}-{least}-{training.updates}".replace(" ", "-")
    folder = training.cache.absolute() / name
    finished = folder / "bleu.json"
    if finished.exists():
        return str(json.loads(finished.read_text())["bleu"])
    folder.mkdir(parents=True, exist_ok=True)
    pairs = with_damage(corpus, damaged_pairs(corpus, kind, rate))
    for side, language in enumerate(("en", corpus.language)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"train.{language}").write_text(text, encoding="utf-8")
    data = [
        "data=files",
        f"data.train={folder / 'train'}",
        f"data.valid={corpus.folder / 'valid'}",
        f"data.test={corpus.folder / 'test'}",
        f"data.target={corpus.language}",
        f"data.filters.similarity={'null' if least is None else least}",
        f"data.filters.languages={'false' if least is None else 'true'}",
        f"prepared={folder / 'prepared'}",
    ]
    run = folder / "run"
    updates = [
        f"trainer.max_steps={training.updates}",
        f"optim.warmup={max(1, training.updates // 12)}",
        f"validation.every_steps={training.updates}",
        f"checkpoints.every_steps={max(1, training.updates // 50)}",
    ]
    run_nmt("preprocess", *SETTINGS, *data)
    run_nmt("train", *SETTINGS, *data, f"run={run}", *updates)
    run_nmt(
        "translate", f"run={run}", f"input={corpus.folder / 'test.en'}", f"output={folder / 'out'}"
    )
    printed = run_nmt(
        "score", str(folder / "out"), str(corpus.folder / f"test.{corpus.language}"), "metrics=bleu"
    )
    bleu = printed.split()[2]  # BLEU = 35.24  nrefs:1|...
    finished.write_text(json.dumps({"bleu": bleu}))
    return bleu


def cells_of(corpus: Corpus, rates: Sequence[float], is_training: bool) -> list[tuple[str, float]]:
    """The kinds of damage and the rates to measure by default."""
    kinds = [name for name in DAMAGES if corpus.foreign or name != "third language"]
    # Training takes long, so single kinds only have the largest rate.
    of_kinds = rates[-1:] if is_training else rates
    cells = [(CLEAN, 0.0)]
    for kind in kinds:
        cells += [(kind, rate) for rate in of_kinds]
    cells += [(MIXED, rate) for rate in rates]
    return cells


def print_checks(corpus: Corpus, cells: Sequence[tuple[str, float]]) -> None:
    print("The filters' cells: precision / recall / lost good pairs.")
    names = ["corpus", "damage", "rate", "notice", "advised", "similarity", "both filters"]
    print(f"| {' | '.join(names)} |")
    print(f"| {' | '.join('---' for _ in names)} |")
    for kind, rate in cells:
        print(measure(corpus, kind, rate), flush=True)


def print_scores(corpus: Corpus, cells: Sequence[tuple[str, float]], training: Training) -> None:
    print(f"| corpus | damage | rate | BLEU | with both filters ({training.least:g}) |")
    print("|---" * 5 + "|")
    for kind, rate in cells:
        scores = [bleu_of(corpus, kind, rate, least, training) for least in (None, training.least)]
        print(f"| {corpus.folder.name} | {kind} | {rate:.0%} | {' | '.join(scores)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--foreign", type=Path, help="lines in a third language")
    parser.add_argument("--pairs", type=int, help="read only the first pairs of a corpus")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.05, 0.2])
    parser.add_argument("--cells", nargs="+", help="such as clean:0 unrelated:0.2")
    parser.add_argument("--train", type=int, metavar="UPDATES")
    parser.add_argument("--similarity", type=float, default=0.35)
    parser.add_argument("--cache", type=Path, default=Path("corpus-alarm"))
    arguments = parser.parse_args()
    fits.sentence_vectors = RememberedVectors()
    for folder in arguments.folders:
        corpus = read_corpus(folder.absolute(), arguments.foreign, arguments.pairs)
        is_training = arguments.train is not None
        cells = cells_of(corpus, arguments.rates, is_training)
        if arguments.cells:
            divided = [cell.split(":") for cell in arguments.cells]
            cells = [(kind, float(rate)) for kind, rate in divided]
        if is_training:
            training = Training(arguments.train, arguments.similarity, arguments.cache)
            print_scores(corpus, cells, training)
        else:
            print_checks(corpus, cells)


if __name__ == "__main__":
    main()
