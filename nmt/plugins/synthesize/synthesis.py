"""Translate lines once, then choose the pairs to train on. The output folder has these files:

identity.json       what the translations depend on: SHA-256 of the input and the model, and settings
translations.jsonl  one object per line, with all its translations, best first
train.LANGUAGE      the chosen pairs, one file for each side
summary.json        how many pairs were kept, and how many were dropped for each reason
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
from nmt.files import parse_json, read_mapping, remove_leftovers, sha256, whole_file, write_file
from nmt.plugins.synthesize.command import SynthesisConfig
from nmt.text import TARGET, open_text, parallel, raw_lines, read_lines

TRANSLATIONS = "translations.jsonl"


def claim(folder: Path, identity: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Store a folder's translation settings; NMTError if it has unrelated files or translations with other settings.

    `before` has the values of options that an older nmt did not store.
    """
    path = folder / "identity.json"
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    is_ours = path.exists() or not any(folder.iterdir())
    require(is_ours, f"output={folder} has unrelated files: name a new or empty folder")
    has_translations = any(folder.glob(f"*{TRANSLATIONS}*"))  # complete or partial
    earlier = {**before, **read_mapping(path, parse_json)} if has_translations else identity
    # An older nmt recorded fewer files.
    other = ", ".join(key for key in identity if key in earlier and earlier[key] != identity[key])
    require(not other, f"output={folder} has translations made with a different {other}: name another folder")
    write_file(path, json.dumps(identity, indent=2) + "\n")


def write_translations(config: JobConfig, models: steps.Models) -> None:
    """Translate to a JSON Lines file; a later call continues an unfinished file."""
    with ExitStack() as stack:
        translator = steps.open_translator(config, stack)
        job = steps.open_job(replace(config, translator=translator.options), "synthesize", stack)
        flags_of, counts = steps.flagger(models), job.output.notes.counts
        for number, line, translations in job.run(lambda lines: translator.stream(lines, config.buffer)):
            steps.report(translator.stages, line, translations[0], f"line {number}", counts)
            texts = [models.tokenizer.clean(t.text, TARGET) for t in translations]
            lengths = [len(tokens) + 1 for tokens in models.tokenizer.encode(texts, TARGET)]  # + 1 for the end symbol
            records = [
                {"text": t.text, "log_probability_per_token": t.log_probability / length, "flags": flags_of(line, t)}
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
    order = np.lexsort((-np.arange(len(scores)), np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)))
    return order[: math.floor(share * len(scores) + 1e-9)]


def choose_pairs(config: SynthesisConfig, models: steps.Models) -> tuple[list[str], list[int], Counter[str]]:
    """Each line's fate and the index of its chosen translation, and the number of pairs with each flag.

    Drops empty pairs, then flagged pairs unless flagged=keep, then the worst share of the rest. All others are kept.
    """
    fates, picks, scores, flags = list[str](), list[int](), list[float](), Counter[str]()
    references: Iterable[str] = repeat("")
    similarity: Callable[[str, str], float] = lambda text, reference: 0.0  # noqa: E731
    if config.reference is not None:
        with open_text(config.reference) as file:
            references = list(steps.input_lines(raw_lines(file, config.reference)))
        tokenizer = evaluation.bleu_tokenizer(None, models.target(config.job.translator), references)
        similarity = evaluation.sentence_scorer(config.metric, tokenizer)
    for row, reference in zip(read_translations(Path(config.output)), references, strict=False):
        similarities = [similarity(t["text"], reference) for t in row["translations"]]
        picks.append(int(np.argmax(similarities)))  # in a tie, the first one, which is the most likely
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
    for name in ("summary.json", *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)
    with ExitStack() as stack:
        paths = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        sources, targets = (stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths)
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
        deque(parallel(names, [read_lines(name) for name in names]), maxlen=0)  # fail before translating for hours
    models = steps.find_models(config.job.translator.run)
    translator = steps.with_engine(config.job.translator, steps.warn, models)
    job = replace(config.job, translator=translator, input=config.input, output=str(folder / TRANSLATIONS))
    identity = {"input": sha256(Path(config.input).resolve()), **steps.what_affects_output(job)}
    claim(folder, identity, steps.options_before(job))
    if not Path(job.output).exists():
        write_translations(job, models)
    source, target = models.descriptions[0].source, models.descriptions[0].target
    with commands.talker().status("choosing pairs"):
        try:
            fates, picks, flags = choose_pairs(config, models)
            counts = {fate: fates.count(fate) for fate in ("empty", "flagged", "unlikely", "kept")}
            why = f"{counts['empty']:,} are empty and {counts['flagged']:,} are flagged (flagged=keep keeps those)"
            require(counts["kept"] > 0, f"{folder}: none of the {len(fates):,} pairs is left: {why}")
            write_pairs(folder, fates, picks, (source, target))
        except (LookupError, TypeError, ValueError) as error:
            raise NMTError(f"{job.output}: damaged; remove it and run the same command to translate again") from error
    kept, lines = counts.pop("kept"), len(fates)
    summary = {"lines": lines, "kept": kept, "dropped": counts, "flags": dict(flags.most_common())}
    write_file(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    named = ", ".join(f"{flag} {count:,}" for flag, count in flags.most_common())
    reasons = {"empty": "empty", "flagged": f"flagged ({named})", "unlikely": "least likely under the model"}
    dropped = ", ".join(f"{count:,} {reasons[reason]}" for reason, count in counts.items() if count)
    print(f"{kept:,} of {lines:,} pairs kept" + (f" (dropped: {dropped})" if dropped else ""))
    print(f"{folder}/train.{target} (written by the model) and train.{source}")
