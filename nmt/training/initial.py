"""The model that a run starts from, `init=`. Does not import torch."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files
from nmt.config import ExperimentConfig, NMTError, difference
from nmt.data import Manifest

if TYPE_CHECKING:
    from nmt.data import PreparedCorpus

SEARCH_KEYS = ("length_penalty", "length_penalty_kind")
"""The search options in a training record; a model keeps them when it is trained further."""
ORIGIN_KEYS = ("license", "base_model", "revision")
"""The origin of a model's weights; the license also applies to models that are made from them."""


def initial_directory(init: str, prepared: Path, manifest: Manifest) -> Path:
    """The model directory of `init`; NMTError if the corpus has another vocabulary."""
    folder = files.find_model_directory(init, "init")
    # Each embedding belongs to a subword of one vocabulary file, so an equal size is not enough.
    if files.read_description(folder).tokenizer != manifest.tokenizer:
        raise NMTError(
            f"init={init} has a different vocabulary than {prepared}: "
            f"prepare the corpus with it: nmt preprocess init={init}"
        )
    return folder


def initial_model(
    config: ExperimentConfig, corpus: "PreparedCorpus"
) -> tuple[Path, dict[str, Any]]:
    """The model directory of `init` and the training record it contains.

    Raises NMTError if the model does not fit the run.
    """
    where = f"init={config.init}"
    folder = initial_directory(config.init or "", corpus.folder, corpus.manifest)
    description = files.read_description(folder)
    # The corpus of such a model names its languages in tags of the same vocabulary.
    if not description.model["target_tags"]:
        files.check_direction(where, description, corpus.source_language, corpus.target_language)
    # Only options that determine the shapes of the weights; dropout, for example, may differ.
    theirs = files.architecture(description.model)
    changed = difference(theirs, files.architecture(asdict(config.model)))
    if changed:
        raise NMTError(f"{where} has a different architecture ({changed}): omit model=")
    return folder, description.training


def origin_of(init: str, record: dict[str, Any]) -> dict[str, str]:
    """The license and the origin of the model that `init` names, if known.

    `record` is the model's training record.
    """
    origin = {key: record[key] for key in ORIGIN_KEYS if record.get(key)}
    if files.is_prefixed(init):
        # A published model is the origin itself, whatever it was made from.
        origin |= files.named_model(init).origin
    return origin


def seen_by_both(record: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """The lengths and characters that a model has seen after further training on a corpus.

    `record` is the model's training record, `seen` are the corpus's lengths and characters.
    """
    search = {key: record[key] for key in SEARCH_KEYS if record.get(key)}
    before = {key: record[key] for key in seen if record.get(key)}
    return {**search, **joined(before, seen)}


def joined(before: Any, now: Any) -> Any:
    """Merge two records: the union of their characters and the greater of each length.

    A key that one of them lacks is dropped.
    """
    # Without the model's own record, the record of the corpus alone would wrongly claim to be
    # complete.
    if isinstance(before, dict):
        return {key: joined(before[key], now[key]) for key in before if key in now}
    if isinstance(before, str):
        return "".join(sorted({*before, *now}))
    return max(before, now)
