"""The runs, corpora and other folders that nmt wrote, with facts about each; without torch."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt import files, training
from nmt.config import NMTError, matches, one_line

Row = dict[str, Any]  # facts about a folder
FIRST_KINDS = ("run", "corpus", "export")
"""The kinds of folders that the tables list first; a model directory counts as a run."""
FOREIGN = "foreign"
"""The kind of a folder in runs/ or data/ that nmt did not write."""
LAST_ROWS = 500
"""Rows of metrics.csv to read from the end; the last validation is among them."""
SCORES = ("valid_loss", "valid_bleu", "valid_f1")


def folders_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """The runs and corpora in a folder, with their kinds.

    These are in the folder's runs/ and data/, or in the folder itself if it has neither, or the
    folder is one. A folder in runs/ or data/ that contains neither has the kind "foreign". Links
    inside are not followed.
    """
    roots = [root for root in (folder / "runs", folder / "data") if root.is_dir()]
    # The folder itself is a run or corpus; otherwise only folders inside it would be listed.
    if not roots and files.kind_of_folder(folder):
        yield from kinds_inside(folder).items()
        return
    for root in roots or [folder]:
        for top in sorted(root.glob("[!.]*/")):
            if top.is_symlink():
                continue
            kinds = kinds_inside(top)
            if roots and not kinds:
                kinds = {top: FOREIGN}
            yield from kinds.items()


def kinds_inside(top: Path) -> dict[Path, str]:
    """The kinds of a folder and of the folders up to two levels inside.

    Folders that nmt did not write are left out.
    """
    inner = [*top.glob("*/"), *top.glob("*/*/")]
    # The model of a run belongs to its row.
    inner = [path for path in inner if path.name != "model"]
    # `top` itself may be below a link, which the user chose; only links inside are refused.
    real_top = Path(os.path.realpath(top))
    kinds = {}
    for path in (top, *inner):
        if Path(os.path.realpath(path)) != real_top / path.relative_to(top):
            continue  # a link, or inside one
        kind = files.kind_of_folder(path)
        if kind:
            kinds[path] = kind
    # An export in a run belongs to that run.
    runs = {path for path, kind in kinds.items() if kind == "run"}
    for path in [path for path, kind in kinds.items() if kind == "export"]:
        if not runs.isdisjoint(path.parents):
            del kinds[path]
    return kinds


def about(folder: Path, kind: str) -> Row:
    """The facts about a folder or the `problem` with it; `modified` is in seconds since 1970."""
    row = {"kind": kind, "name": str(folder)}
    empty = {"bytes": 0, "modified": 0}
    if kind == FOREIGN:
        return {**row, "state": FOREIGN, "problem": "not a run or corpus of nmt", **empty}
    size = empty
    try:
        # First, so that a damaged run still has its size and age.
        size = size_of(folder)
        facts = facts_about(folder, kind)
    except (NMTError, OSError, ValueError) as error:
        facts = {"state": "damaged", "problem": one_line(error)}
    return {**row, **facts, **size}


def facts_about(folder: Path, kind: str) -> Row:
    if kind == "run":
        return about_run(folder)
    if kind == "corpus":
        return about_corpus(folder)
    return {"state": kind}


def size_of(folder: Path) -> Row:
    """The total bytes of all files, and when a file that marks nmt's folders last changed."""
    marks = ("metrics.csv", *files.markers())
    total = 0
    modified = 0.0
    for path in folder.rglob("*"):
        if not path.is_dir():
            # lstat: a link counts with its own size, not with the size of its target.
            stat = path.lstat()
            total += stat.st_size
            if path.name in marks:
                modified = max(modified, stat.st_mtime)
    return {"bytes": total, "modified": int(modified)}


def about_run(folder: Path) -> Row:
    """The state, updates and validation scores of a run or model directory."""
    config: dict[str, Any] = {}
    if (folder / "config.yaml").exists():
        config = training.read_config(folder)
    record: dict[str, Any] = {}
    # Without a configuration, the folder is a model directory.
    if not config or (folder / "model").exists():
        model = files.find_model_directory(str(folder))
        record = files.read_description(model).training
    rows = training.read_metrics(folder, last=LAST_ROWS)
    planned = files.within(config, "trainer", "max_steps")
    if not matches(planned, int):
        planned = 0
    delivered = record.get("updates", 0)
    # The last checkpoint may be behind the log while a run trains, or deleted when it has ended.
    updates = [delivered]
    updates += [training.checkpoint_step(path) for path in training.list_checkpoints(folder)]
    if rows:
        updates.append(int(rows[-1]["step"]))
    update = max(updates)
    state = training.run_state(folder, update, planned, delivered) if config else "model"
    # The model of a finished run may be an earlier checkpoint or a mean.
    scores = scores_of(rows, record if state == "finished" else {})
    return {"state": state, "updates": update, "planned": planned, **scores}


def scores_of(rows: list[dict[str, str]], record: dict[str, Any]) -> dict[str, float | None]:
    """The scores in a model's training record, or else those of the last validation.

    None where a score is unknown or not finite.
    """
    validated = last_validation(rows)
    scores = {key: float(validated.get(key) or "nan") for key in SCORES}
    score = files.within(record, "score", "value")
    if matches(score, float):
        scores["valid_f1" if validated.get("valid_f1") else "valid_bleu"] = score
        # The delivered model is the candidate with the lowest loss.
        losses = record.get("candidates", {}).values()
        scores["valid_loss"] = min(losses, default=scores["valid_loss"])
    # JSON has no NaN.
    return {key: score if math.isfinite(score) else None for key, score in scores.items()}


def last_validation(rows: list[dict[str, str]]) -> dict[str, str]:
    """The last row of metrics.csv that a validation wrote; empty if there is none."""
    for row in reversed(rows):
        if row.get("valid_loss"):
            return row
    return {}


def about_corpus(folder: Path) -> Row:
    """The languages and sizes of a prepared corpus.

    NMTError if another program wrote the manifest.
    """
    path = folder / "manifest.json"
    tree = files.read_mapping(path, files.parse_json, files.LARGE)
    source = files.within(tree, "content", "data", "source")
    target = files.within(tree, "content", "data", "target")
    pairs = files.within(tree, "counts", "train", "kept")
    vocabulary = tree.get("vocabulary_size")
    has_languages = matches(source, str) and matches(target, str)
    has_sizes = matches(pairs, int) and matches(vocabulary, int)
    if not (has_languages and has_sizes):
        raise NMTError(f"{path} was not written by `nmt preprocess`")
    return {
        "state": "prepared",
        "source": source,
        "target": target,
        "pairs": pairs,
        "vocabulary": vocabulary,
    }


def place_of(kind: str) -> tuple[int, str]:
    """The place of a kind of folder in the tables.

    The kinds of plugins follow nmt's own, and foreign folders come last.
    """
    if kind in FIRST_KINDS:
        return FIRST_KINDS.index(kind), kind
    if kind == FOREIGN:
        return len(FIRST_KINDS) + 1, kind
    return len(FIRST_KINDS), kind
