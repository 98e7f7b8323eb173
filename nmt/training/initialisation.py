"""Training that starts from a trained model (`init`): its weights, and what has to agree with them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt.config import ExperimentConfig, difference
from nmt.data import PreparedCorpus
from nmt.errors import NMTError
from nmt.files import (
    ModelDescription,
    architecture,
    check_direction,
    find_model_directory,
    is_exported,
    load_model,
    read_description,
    sha256,
    within,
)
from nmt.model import Transformer

SIDES, LENGTHS, SEARCH = ("source", "target"), ("p99", "max"), ("length_penalty", "length_penalty_kind")


@dataclass
class Initial:
    """The model that a training starts from."""

    folder: Path
    description: ModelDescription
    weights: str
    """SHA-256 of its weights."""

    def load_into(self, model: Transformer) -> None:
        """Copy its weights."""
        model.load_state_dict(load_model(self.folder).state_dict())

    def seen_with(self, seen: dict[str, Any]) -> dict[str, Any]:
        """The search that it expects, and the lengths and characters of its training pairs and of others.

        The latter as far as they are known of both.
        """
        both = [self.description.training, seen]
        characters = {side: [within(each, "characters", side) for each in both] for side in SIDES}
        lengths = {
            (side, key): [within(each, "lengths", side, key) for each in both] for side in SIDES for key in LENGTHS
        }
        known = {key: own for key in SEARCH if (own := self.description.training.get(key)) is not None}
        if all(isinstance(text, str) for texts in characters.values() for text in texts):
            known["characters"] = {side: "".join(sorted(set("".join(texts)))) for side, texts in characters.items()}
        if all(isinstance(length, int) for found in lengths.values() for length in found):
            known["lengths"] = {side: {key: max(lengths[side, key]) for key in LENGTHS} for side in SIDES}
        return known


def find_initial(config: ExperimentConfig, corpus: PreparedCorpus) -> Initial | None:
    """The model of `config.init`, or None; NMTError where vocabulary, shape or direction are not those of the run."""
    if config.init is None:
        return None
    folder = find_model_directory(config.init, "init")
    description = read_description(folder)
    where, manifest = f"init={config.init}", corpus.manifest
    if is_exported(folder):
        raise NMTError(f"{where}: exported for another program; name the run, or its model directory")
    if description.tokenizer != manifest.tokenizer:
        raise NMTError(
            f"{where} has another vocabulary than {corpus.folder}: prepare the corpus with it, "
            f"`nmt preprocess init={config.init} ...`"
        )
    check_direction(where, description, corpus.source_language, corpus.target_language)
    if changed := difference(architecture(description.model), architecture(asdict(config.model))):
        raise NMTError(f"{where} is another model ({changed}): leave model out")
    return Initial(folder, description, sha256(folder / "model.safetensors"))
