"""Which points of a sweep differ significantly from the best, by the translations that their validations kept."""

from collections.abc import Mapping
from pathlib import Path

from nmt.comparison.significance import Sampling, measure
from nmt.comparison.summary import STAR
from nmt.evaluation.scores import score
from nmt.training.run_folder import Texts, read_validation

SAME = "no"
"""Tested, and not significantly different."""
ROUNDING = 0.01
"""By how much the BLEU of kept translations may differ from the one that was logged."""


def kept_texts(run: Path, bleu: str) -> Texts | None:
    """The translations of a run's last validation; None unless their BLEU is the one that its table has."""
    texts = read_validation(run)
    if not texts or not texts[0] or not bleu:
        return None
    return texts if abs(score(*texts, ["bleu"])[0].value - float(bleu)) < ROUNDING else None


def differ_from_best(best: Mapping[str, str], others: list[dict[str, str]]) -> list[str]:
    """For each other row of a sweep's table, a star where its BLEU differs significantly from the best, "no" where it
    does not, and nothing where that could not be tested."""
    ours = kept_texts(Path(best["run"]), best["valid_bleu"])
    found = []
    for row in others:
        theirs = kept_texts(Path(row["run"]), row["valid_bleu"]) if ours else None
        if ours is None or theirs is None or theirs[1] != ours[1]:
            found.append("")
            continue
        numbers = measure([[ours[0]], [theirs[0]]], ours[1], ["bleu"], Sampling())
        found.append(STAR if numbers.differences[0]["bleu"].significant else SAME)
    return found
