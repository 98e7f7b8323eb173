"""Synthetic pairs: which ones are kept, and the files that a training takes."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nmt.config import require
from nmt.errors import NMTError
from nmt.files import whole_file, write_file
from nmt.plugins.synthesize.config import SynthesiseConfig
from nmt.translation import find_models

KEPT, EMPTY, FLAGGED, UNLIKELY = range(4)
"""What becomes of a pair."""
REASONS = {EMPTY: "empty", FLAGGED: "flagged", UNLIKELY: "unlikely"}


def is_pair(source: str, target: str) -> bool:
    """True if neither side is empty."""
    return bool(source.strip() and target.strip())


def worst(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """The indices of that share of the scores, rounded down, that are lowest; of equal ones, the last."""
    order = np.lexsort((-np.arange(len(scores)), np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)))
    return order[: math.floor(share * len(scores) + 1e-9)]


@dataclass
class Summary:
    """What became of the lines."""

    source: str
    """The language of the sources of the pairs, and of their targets."""
    target: str
    lines: int
    kept: int
    dropped: dict[str, int]
    """Lines by the reason why they were left out."""
    flags: dict[str, int]
    """Pairs that have each flag; a pair may have several."""
    least: float | None
    """The lowest log P per token of a pair that is kept."""


def fates(
    files: Sequence[Path], drop: float, flagged: str
) -> tuple[NDArray[np.int8], NDArray[np.float64], Counter[str]]:
    """What becomes of each pair, their log P per token, and how many have each flag.

    Empty pairs are dropped, then those with flags unless flagged=keep, then the worst share of the rest.
    """
    reasons, scores, flags = [np.zeros(0, np.int8)], [np.zeros(0)], Counter[str]()
    for file in files:
        try:
            columns = pq.read_table(file).to_pydict()
        except (pa.ArrowException, OSError) as error:
            raise NMTError(f"{file}: damaged; remove it, and the same command writes it again") from error
        pairs = map(is_pair, columns["source"], columns["translation"])
        found = list(zip(pairs, columns["flags"], strict=True))
        flags.update(flag for pair, own in found if pair for flag in own)
        codes = [EMPTY if not pair else FLAGGED if own and flagged == "drop" else KEPT for pair, own in found]
        reasons.append(np.array(codes, np.int8))
        scores.append(np.array(columns["log_probability_per_token"], np.float64))
    all_reasons, all_scores = np.concatenate(reasons), np.concatenate(scores)
    left = np.flatnonzero(all_reasons == KEPT)
    all_reasons[left[worst(all_scores[left], drop)]] = UNLIKELY
    return all_reasons, all_scores, flags


def kept_pairs(files: Sequence[Path], kept: NDArray[np.bool_]) -> Iterator[tuple[str, str]]:
    """Line and translation of the pairs that are kept, in the order of the lines."""
    first = 0
    for file in files:
        table = pq.read_table(file, columns=["source", "translation"])
        rows = table.filter(kept[first : first + len(table)]).to_pydict()
        yield from zip(rows["source"], rows["translation"], strict=True)
        first += len(table)


def write_pairs(config: SynthesiseConfig, files: Sequence[Path], folder: Path) -> Summary:
    """Write the pairs of these Parquet files that are good enough, and a summary; NMTError if there are none."""
    _, [description, *_], _ = find_models(config.run)
    reasons, scores, flags = fates(files, config.drop, config.flagged)
    kept = reasons == KEPT
    dropped = {name: int((reasons == code).sum()) for code, name in REASONS.items()}
    why = f"{dropped['empty']:,} are empty and {dropped['flagged']:,} have flags, which flagged=keep keeps"
    require(bool(kept.any()), f"{folder}: none of {len(kept):,} pairs is left: {why}")
    sides = (description.target, description.source)  # of a translation, and of its line
    # After a kill no file is there that belongs to others.
    for name in ("summary.json", *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)
    with ExitStack() as stack:
        names = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        line_file, translation_file = (
            stack.enter_context(name.open("w", encoding="utf-8", newline="\n")) for name in names[::-1]
        )
        for line, translation in kept_pairs(files, kept):
            line_file.write(f"{line}\n")
            translation_file.write(f"{translation}\n")
    source, target = sides if config.kind == "back_translation" else sides[::-1]
    least = float(scores[kept].min())
    summary = Summary(source, target, len(kept), int(kept.sum()), dropped, dict(flags.most_common()), least)
    write_file(folder / "summary.json", json.dumps(asdict(summary), indent=2) + "\n")
    return summary
