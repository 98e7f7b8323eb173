"""Which points of a sweep differ significantly from the best, by the translations that their validations kept."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer, score
from nmt.files import within
from nmt.plugins.compare.page import STAR
from nmt.plugins.compare.significance import FEWEST_LINES, Sampling, measure
from nmt.training import Texts, read_config, read_validation

SAME = "no"
"""Tested, and not significantly different."""
ROUNDING = 0.01
"""By how much the BLEU of kept translations may differ from the one that was logged."""


def tokenizer_of(run: Path, references: list[str]) -> str:
    """The tokenizer of BLEU in a run's validations; where its configuration is unreadable, the references decide."""
    config: dict[str, Any] = {}
    with suppress(NMTError):
        config = read_config(run)
    return bleu_tokenizer(within(config, "validation", "tokenize"), within(config, "data", "target"), references)


def kept_texts(row: Mapping[str, str]) -> Texts | None:
    """The translations of a run's last validation; None unless their BLEU is the one that its table has."""
    run, bleu = Path(row["run"]), row["valid_bleu"]
    texts = read_validation(run)
    if not texts or not texts[0] or not bleu:
        return None
    [again] = score(*texts, ["bleu"], tokenize=tokenizer_of(run, texts[1]))
    return texts if abs(again.value - float(bleu)) < ROUNDING else None


def differ_from_best(best: Mapping[str, str], others: list[dict[str, str]]) -> list[str]:
    """For each other row of a sweep's table, a star where its BLEU differs significantly from the best, "no" where it
    does not, and nothing where that could not be tested."""
    ours = kept_texts(best)
    cells = []
    for row in others:
        theirs = kept_texts(row) if ours else None
        if ours is None or theirs is None or theirs[1] != ours[1]:
            cells.append("")
            continue
        sampling = Sampling(tokenize=tokenizer_of(Path(best["run"]), ours[1]))
        difference = measure([[ours[0]], [theirs[0]]], ours[1], ["bleu"], sampling)["differences"][0]["bleu"]
        cells.append(STAR if difference["significant"] else SAME if len(ours[1]) >= FEWEST_LINES else "")
    return cells
