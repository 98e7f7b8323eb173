"""Translate lines once, then choose the pairs to train on. The output folder has these files:

identity.json       what the translations depend on: SHA-256 of the input and the model, and settings
translations.jsonl  one object per line, with all its translations, best first
train.LANGUAGE      the chosen pairs, one file for each side
summary.json        how many pairs were kept, and how many were dropped for each reason
.lock               held by the process that works in the folder
"""

import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nmt.translation as steps
from nmt import commands, evaluation
from nmt.config import JobConfig, NMTError, require
from nmt.files import (
    LOCK,
    only_process,
    parse_json,
    read_mapping,
    remove_leftovers,
    sha256,
    whole_file,
    write_file,
)
from nmt.plugins.synthesize.command import SynthesisConfig
from nmt.text import TARGET, open_text, parallel, raw_lines, read_lines

IDENTITY = "identity.json"
TRANSLATIONS = "translations.jsonl"


def check_ours(folder: Path) -> None:
    """Raise NMTError if a folder has files that this command did not write."""
    if not folder.is_dir():
        return
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".nmt-tmp")}
    is_ours = IDENTITY in names or names <= {LOCK}
    require(is_ours, f"output={folder} has unrelated files: name a new or empty folder")


def claim(folder: Path, identity: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Store what a folder's translations depend on; NMTError if it has some with other settings.

    `before` has the values of options that an older nmt did not store.
    """
    if any(folder.glob(f"*{TRANSLATIONS}*")):  # complete or partial
        check_same(folder, identity, before)
    write_file(folder / IDENTITY, json.dumps(identity, indent=2) + "\n")


def start_again(folder: Path, identity: dict[str, Any], sides: Sequence[str]) -> None:
    """Remove what earlier commands wrote, and store what the new translations depend on.

    A partial file stays: the job resumes it if its settings are the same.
    """
    (folder / TRANSLATIONS).unlink(missing_ok=True)
    remove_pairs(folder, sides)
    write_file(folder / IDENTITY, json.dumps(identity, indent=2) + "\n")


def check_same(folder: Path, identity: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Raise NMTError if the translations in a folder were made with other settings."""
    advice = "pass overwrite=true to replace them, or name another folder"
    try:
        recorded = read_mapping(folder / IDENTITY, parse_json)
    except NMTError as error:
        problem = f"output={folder} has translations with unknown settings ({error})"
        raise NMTError(f"{problem}: {advice}") from error
    earlier = {**before, **recorded}
    # An older nmt recorded fewer files.
    other = ", ".join(key for key in identity if key in earlier and earlier[key] != identity[key])
    require(not other, f"output={folder} has translations made with a different {other}: {advice}")


def remove_pairs(folder: Path, sides: Sequence[str]) -> None:
    """Remove the chosen pairs and the summary of the choice."""
    for name in ("summary.json", *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)


def write_translations(config: JobConfig, models: steps.Models) -> None:
    """Translate to a JSON Lines file; a later call continues an unfinished file."""
    with ExitStack() as stack:
        translator = steps.open_translator(config, stack)
        job = steps.open_job(replace(config, translator=translator.options), "synthesize", stack)
        flags_of, counts = steps.flagger(models), job.output.notes.counts
        for number, line, translations in job.run(
            lambda lines: translator.stream(lines, config.buffer)
        ):
            steps.report(translator.stages, line, translations[0], f"line {number}", counts)
            texts = [models.tokenizer.clean(t.text, TARGET) for t in translations]
            lengths = [
                len(tokens) + 1 for tokens in models.tokenizer.encode(texts, TARGET)
            ]  # + 1 for the end symbol
            records = [
                {
                    "text": t.text,
                    "log_probability_per_token": t.log_probability / length,
                    "flags": flags_of(line, t),
                }
                for t, length in zip(translations, lengths, strict=True)
            ]
            record = {"line": number, "source": line, "translations": records}
            job.output.write(json.dumps(record, ensure_ascii=False) + "\n", number)
    steps.summarize(counts)


def read_translations(folder: Path) -> Iterator[dict[str, Any]]:
    with (folder / TRANSLATIONS).open(encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)


def worst(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """Indices of the lowest `share` of the scores, rounded down; of equal scores, the later ones come first."""
    order = np.lexsort(
        (-np.arange(len(scores)), np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf))
    )
    return order[: math.floor(share * len(scores) + 1e-9)]


def choose_pairs(
    config: SynthesisConfig, models: steps.Models
) -> tuple[list[str], list[int], Counter[str]]:
    """Each line's fate and the index of its chosen translation, and the number of pairs with each flag.

    Drops empty pairs, then flagged pairs unless flagged=keep, then the worst share of the rest. All others are kept.
    """
    fates, picks, scores, flags = list[str](), list[int](), list[float](), Counter[str]()
    references: Iterable[str] = repeat("")
    similarity: Callable[[str, str], float] = lambda text, reference: 0.0  # noqa: E731
    if config.reference is not None:
        with open_text(config.reference) as file:
            references = list(steps.input_lines(raw_lines(file, config.reference)))
        tokenizer = evaluation.bleu_tokenizer(
            None, models.target(config.job.translator), references
        )
        similarity = evaluation.sentence_scorer(config.metric, tokenizer)
    for row, reference in zip(read_translations(Path(config.output)), references, strict=False):
        similarities = [similarity(t["text"], reference) for t in row["translations"]]
        picks.append(
            int(np.argmax(similarities))
        )  # in a tie, the first one, which is the most likely
        best = row["translations"][picks[-1]]
        is_empty = not (row["source"].strip() and best["text"].strip())
        is_flagged = best["flags"] and config.flagged == "drop"
        scores.append(best["log_probability_per_token"])
        fates.append("empty" if is_empty else "flagged" if is_flagged else "kept")
        flags.update([] if is_empty else best["flags"])
    candidates = [index for index, fate in enumerate(fates) if fate == "kept"]
    for index in worst(np.array(scores)[candidates], config.drop):
        fates[candidates[index]] = "unlikely"
    return fates, picks, flags


def write_pairs(folder: Path, fates: list[str], picks: list[int], sides: Sequence[str]) -> None:
    # Remove these first, so that a killed process never leaves files from an earlier choice next to new ones.
    remove_pairs(folder, sides)
    with ExitStack() as stack:
        paths = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        sources, targets = (
            stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths
        )
        for row, pick, fate in zip(read_translations(folder), picks, fates, strict=True):
            if fate == "kept":
                sources.write(f"{row['source']}\n")
                targets.write(f"{row['translations'][pick]['text']}\n")


def synthesize(config: SynthesisConfig) -> None:
    """Pair the lines of a file with their translations and write the chosen pairs.

    Complete translations are reused: changing a key that only affects the choice of pairs translates nothing again.
    """
    folder = Path(config.output)
    if config.reference is not None:
        names = (config.input, config.reference)
        deque(
            parallel(names, [read_lines(name) for name in names]), maxlen=0
        )  # fail before translating for hours
    models = steps.find_models(config.job.translator.run)
    job = replace(
        config.job,
        translator=steps.with_engine(config.job.translator, steps.warn, models),
        input=config.input,
        output=str(folder / TRANSLATIONS),
        overwrite=config.overwrite,
    )
    identity = {"input": sha256(Path(config.input).resolve()), **steps.what_affects_output(job)}
    sides = (models.descriptions[0].source, models.descriptions[0].target)
    check_ours(folder)
    with only_process(folder, "output"):
        remove_leftovers(folder)
        if config.overwrite:
            start_again(folder, identity, sides)
        else:
            claim(folder, identity, steps.options_before(job))
        if not Path(job.output).exists():
            write_translations(job, models)
        with commands.talker().status("choosing pairs"):
            choose_and_write(config, models, sides)


def choose_and_write(config: SynthesisConfig, models: steps.Models, sides: tuple[str, str]) -> None:
    """Write the chosen pairs, and report how many pairs were dropped and why."""
    folder = Path(config.output)
    source, target = sides
    try:
        fates, picks, flags = choose_pairs(config, models)
        counts = {fate: fates.count(fate) for fate in ("empty", "flagged", "unlikely", "kept")}
        why = f"{counts['empty']:,} are empty and {counts['flagged']:,} are flagged (flagged=keep keeps those)"
        require(counts["kept"] > 0, f"{folder}: none of the {len(fates):,} pairs is left: {why}")
        write_pairs(folder, fates, picks, sides)
    except (LookupError, TypeError, ValueError) as error:
        path = folder / TRANSLATIONS
        raise NMTError(
            f"{path}: damaged; remove it and run the same command to translate again"
        ) from error
    kept = counts.pop("kept")
    lines = len(fates)
    summary = {"lines": lines, "kept": kept, "dropped": counts, "flags": dict(flags.most_common())}
    write_file(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    named = ", ".join(f"{flag} {count:,}" for flag, count in flags.most_common())
    reasons = {
        "empty": "empty",
        "flagged": f"flagged ({named})",
        "unlikely": "least likely under the model",
    }
    dropped = ", ".join(f"{count:,} {reasons[reason]}" for reason, count in counts.items() if count)
    print(f"{kept:,} of {lines:,} pairs kept" + (f" (dropped: {dropped})" if dropped else ""))
    print(f"{folder}/train.{target} (written by the model) and train.{source}")
