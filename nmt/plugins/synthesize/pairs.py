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
from nmt.plugins.synthesize.command import SynthesiseConfig
from nmt.translation import find_models

REASONS = ("kept", "empty", "flagged", "unlikely")
"""What becomes of a pair, by number."""
KEPT, EMPTY, FLAGGED, UNLIKELY = range(4)


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


def is_pair(source: str, target: str) -> bool:
    """True if neither side is empty."""
    return bool(source.strip() and target.strip())


def worst(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """The indices of that share of the scores, rounded down, that are lowest; of equal ones, the last."""
    order = np.lexsort((-np.arange(len(scores)), np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)))
    return order[: math.floor(share * len(scores) + 1e-9)]


def judge_pairs(
    files: Sequence[Path], drop: float, flagged: str
) -> tuple[NDArray[np.int8], NDArray[np.float64], Counter[str]]:
    """What becomes of each pair, their log P per token, and how many have each flag.

    Empty pairs are dropped, then those with flags unless flagged=keep, then the worst share of the rest.
    """
    codes, scores, flags = list[int](), list[float](), Counter[str]()
    for file in files:
        try:
            rows = pq.read_table(file).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise NMTError(f"{file}: damaged; remove it, and the same command writes it again") from error
        for row in rows:
            pair = is_pair(row["source"], row["translation"])
            flags.update(row["flags"] if pair else ())
            codes.append(EMPTY if not pair else FLAGGED if row["flags"] and flagged == "drop" else KEPT)
            scores.append(row["log_probability_per_token"])
    code_array, score_array = np.array(codes, np.int8), np.array(scores, np.float64)
    left = np.flatnonzero(code_array == KEPT)
    code_array[left[worst(score_array[left], drop)]] = UNLIKELY
    return code_array, score_array, flags


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
    _, [description, *_], _ = find_models(config.translation.translator.run)
    codes, scores, flags = judge_pairs(files, config.drop, config.flagged)
    kept = codes == KEPT
    dropped = {REASONS[code]: int((codes == code).sum()) for code in (EMPTY, FLAGGED, UNLIKELY)}
    why = f"{dropped['empty']:,} are empty and {dropped['flagged']:,} have flags, which flagged=keep keeps"
    require(bool(kept.any()), f"{folder}: none of {len(kept):,} pairs is left: {why}")
    sides = (description.source, description.target)  # of a line, and of its translation
    # After a kill no file is there that belongs to others.
    for name in ("summary.json", *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)
    with ExitStack() as stack:
        names = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        outputs = [stack.enter_context(name.open("w", encoding="utf-8", newline="\n")) for name in names]
        for pair in kept_pairs(files, kept):
            for output, text in zip(outputs, pair, strict=True):
                output.write(f"{text}\n")
    source, target = sides[::-1] if config.kind == "back_translation" else sides
    least = float(scores[kept].min())
    summary = Summary(source, target, len(kept), int(kept.sum()), dropped, dict(flags.most_common()), least)
    write_file(folder / "summary.json", json.dumps(asdict(summary), indent=2) + "\n")
    return summary
