"""Choose the pairs to train on from a file of translations, and write them."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nmt.translation as steps
from nmt import evaluation
from nmt.config import NMTError
from nmt.files import whole_file, write_file
from nmt.plugins.synthesize.command import SynthesisConfig
from nmt.plugins.synthesize.folder import SUMMARY, TRANSLATIONS, remove_pairs
from nmt.text import open_bytes, raw_lines

DROPPED = ("empty", "flagged", "unlikely")
"""The reasons to drop a pair, in the order in which they are checked."""
KEPT = "kept"
Record = dict[str, Any]  # a line of translations.jsonl


@dataclass
class Selection:
    """The choice among all lines."""

    # Only what is needed to write the pairs: texts are read from the file again.
    fates: list[str] = field(default_factory=list)
    """For each line: "kept", or the reason to drop it."""
    picks: list[int] = field(default_factory=list)
    """For each line, the index of its chosen translation."""
    flags: Counter[str] = field(default_factory=Counter)
    """The number of pairs with each flag."""

    def count(self, fate: str) -> int:
        return self.fates.count(fate)


def read_translations(folder: Path) -> Iterator[Record]:
    with (folder / TRANSLATIONS).open(encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)


def worst(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """Indices of the lowest `share` of the scores, rounded down; later lines first if equal."""
    later_first = -np.arange(len(scores))
    # NaN cannot be ordered. It counts as the lowest score.
    lowest_first = np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)
    order = np.lexsort((later_first, lowest_first))  # the last key decides first
    # 0.29 * 100 is 28.999999999999996.
    count = math.floor(share * len(scores) + 1e-9)
    return order[:count]


def choose_pairs(config: SynthesisConfig, models: steps.Models) -> Selection:
    """The choice of pairs.

    Drops empty pairs, then flagged pairs unless flagged=keep, then the worst share of the rest. All
    others are kept.
    """
    selection = Selection()
    scores = []
    for record, pick in picked_translations(config, models):
        best = record["translations"][pick]
        is_empty = not record["source"].strip() or not best["text"].strip()
        if is_empty:
            fate = "empty"
        elif best["flags"] and config.flagged == "drop":
            fate = "flagged"
        else:
            fate = KEPT
        if not is_empty:
            selection.flags.update(best["flags"])
        selection.fates.append(fate)
        selection.picks.append(pick)
        # Per token, because the probability of a long sentence is always low.
        scores.append(best["log_probability_per_token"])
    # The share refers to pairs that would be kept, so it does not depend on how many are flagged.
    candidates = [index for index, fate in enumerate(selection.fates) if fate == KEPT]
    for index in worst(np.array(scores)[candidates], config.drop):
        selection.fates[candidates[index]] = "unlikely"
    return selection


def picked_translations(
    config: SynthesisConfig, models: steps.Models
) -> Iterator[tuple[Record, int]]:
    """Each record with the index of its best translation.

    The best is the most likely translation or, with references, the most similar to its reference.
    """
    records = read_translations(Path(config.output))
    if config.reference is None:
        yield from zip(records, repeat(0))
        return
    references = read_references(config.reference)
    target = models.target(config.job.translator)
    tokenizer = evaluation.bleu_tokenizer(None, target, references)
    similarity = evaluation.sentence_scorer(config.metric, tokenizer)
    # The numbers of lines were compared before the translation.
    for record, reference in zip(records, references, strict=False):
        texts = [translation["text"] for translation in record["translations"]]
        similarities = [similarity(text, reference) for text in texts]
        # In a tie, the first one, which is the most likely.
        yield record, int(np.argmax(similarities))


def read_references(name: str) -> list[str]:
    with open_bytes(name) as file:
        return list(steps.input_lines(raw_lines(file, name)))


def write_pairs(folder: Path, selection: Selection, sides: Sequence[str]) -> None:
    """Write the kept pairs, one file for each side."""
    # Remove these first, so that a killed process never leaves files from an earlier choice next to
    # new ones.
    remove_pairs(folder, sides)
    with ExitStack() as stack:
        files = []
        paths = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        for path in paths:
            file = path.open("w", encoding="utf-8", newline="\n")
            files.append(stack.enter_context(file))
        sources, targets = files
        rows = zip(read_translations(folder), selection.picks, selection.fates, strict=True)
        for record, pick, fate in rows:
            if fate == KEPT:
                sources.write(f"{record['source']}\n")
                targets.write(f"{record['translations'][pick]['text']}\n")


def choose_and_write(config: SynthesisConfig, models: steps.Models, sides: tuple[str, str]) -> None:
    """Write the chosen pairs, and report how many pairs were dropped and why."""
    folder = Path(config.output)
    try:
        selection = choose_pairs(config, models)
        check_not_empty(folder, selection)
        write_pairs(folder, selection, sides)
    # The file is read without separate checks: any key missing from a record ends up here.
    except (LookupError, TypeError, ValueError) as error:
        path = folder / TRANSLATIONS
        advice = "remove it and run the same command to translate again"
        raise NMTError(f"{path}: damaged; {advice}") from error
    summary = {
        "lines": len(selection.fates),
        "kept": selection.count(KEPT),
        "dropped": {reason: selection.count(reason) for reason in DROPPED},
        "flags": dict(selection.flags.most_common()),
    }
    # The summary comes last, so it is only there if the pairs are complete.
    write_file(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    print(how_many_kept(selection))
    source, target = sides
    print(f"{folder}/train.{target} (written by the model) and train.{source}")


def check_not_empty(folder: Path, selection: Selection) -> None:
    """Raise NMTError if no pair is left to train on."""
    if selection.count(KEPT):
        return
    empty = f"{selection.count('empty'):,} are empty"
    flagged = f"{selection.count('flagged'):,} are flagged (flagged=keep keeps those)"
    lines = len(selection.fates)
    raise NMTError(f"{folder}: none of the {lines:,} pairs is left: {empty} and {flagged}")


def how_many_kept(selection: Selection) -> str:
    """The number of kept pairs, and the numbers of pairs that were dropped for each reason."""
    flags = [f"{flag} {count:,}" for flag, count in selection.flags.most_common()]
    reasons = {
        "empty": "empty",
        "flagged": f"flagged ({', '.join(flags)})",
        "unlikely": "least likely under the model",
    }
    dropped = []
    for reason in DROPPED:
        count = selection.count(reason)
        if count:
            dropped.append(f"{count:,} {reasons[reason]}")
    kept = f"{selection.count(KEPT):,} of {len(selection.fates):,} pairs kept"
    return f"{kept} (dropped: {', '.join(dropped)})" if dropped else kept
