"""The description of a model: config.json of a model directory.

model.safetensors   weights
config.json         format version, model configuration, languages, vocabulary
tokenizer.model     sentencepiece model, or word-pieces as JSON
README.md           model card

nmt.model reads the weights, so that this module need not load torch.
"""

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from nmt.config import (
    DIRECTION,
    MULTIPLE,
    DecodeConfig,
    ModelConfig,
    NMTError,
    TokenizerConfig,
    build_stored,
    matches,
    structured_targets,
    to_tree,
    with_defaults,
)
from nmt.extensions import StructuredTargets
from nmt.files.locks import LOCK, locked_file
from nmt.files.named import is_prefixed, named_model
from nmt.files.reading import check_version, parse_json, read_mapping

FORMAT_VERSION = 1
MODEL_FILES = ("config.json", "tokenizer.model", "model.safetensors")
MOST_JOINED = 100
"""The maximum of data.join."""
RARE_LETTERS = "rare"
"""The key of letters that are too rare in the training sources, next to the key of the characters
that the model can learn (`characters` in `training`)."""


@dataclass(frozen=True)
class TrainingRecord:
    """How a model was trained, or where it was imported from; None: not recorded."""

    updates: int | None = None
    tokens: int | None = None
    """The number of target tokens that the model was trained on."""
    seconds: float | None = None
    devices: str | None = None
    """The hardware, in words."""
    averaged: list[int] | None = None
    """The update numbers of the checkpoints whose mean is the weights."""
    candidates: dict[str, float] | None = None
    """Candidate -> validation loss, for the means from which the weights were chosen."""
    score: dict[str, Any] | None = None
    """The score on the validation set."""
    corpus: str | None = None
    """The fingerprint of the prepared corpus."""
    config: dict[str, Any] | None = None
    """The configuration of the training."""
    init: str | None = None
    """The SHA-256 of the weights that the training started from."""
    versions: dict[str, str] | None = None
    """The versions of nmt and of libraries."""
    imported: str | None = None
    """The model that was imported, in words."""
    certificate: str | None = None
    """How an imported model compares with the original, in words."""
    extended: str | None = None
    """The languages that `nmt extend` added."""
    license: str | None = None
    """The license of an imported model, such as cc-by-nc-4.0, or of the one that `init` names."""
    base_model: str | None = None
    """The model on the hub that was imported, such as facebook/nllb-200-distilled-600M.

    After further training, still that model.
    """
    revision: str | None = None
    """The hash of the commit of `base_model`, if nmt downloaded it."""
    vocabulary: str | None = None
    """The kind of vocabulary of an imported model, as in TokenizerConfig; None: marian."""
    length_penalty: float | None = None
    """The length penalty that an imported model expects."""
    length_penalty_kind: str | None = None


@dataclass
class ModelDescription:
    """`config.json` of a model directory."""

    model: dict[str, Any]
    """ModelConfig as a mapping."""
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str
    """The SHA-256 of tokenizer.model."""
    training: dict[str, Any]
    """The entries of TrainingRecord and, if recorded, the lengths and characters of the training
    pairs."""
    format_version: int = FORMAT_VERSION

    @property
    def record(self) -> TrainingRecord:
        """The entries of `training` with a known type."""
        # Plugins and later versions may add entries, which this version ignores.
        names = {field.name for field in fields(TrainingRecord)}
        entries = {name: value for name, value in self.training.items() if name in names}
        return TrainingRecord(**entries)


def find_model_directory(path: str, key: str = "run") -> Path:
    """Find the model directory in a run, or return `path` if it is one.

    A plugin finds names with its prefix, such as hub:ORG/NAME. Raises NMTError, which names `key`,
    if there is no model.
    """
    if is_prefixed(path):
        return named_model(path).folder
    folder = Path(path)
    inside = folder / "model"
    # Someone else's folder could otherwise name any file on this machine as its model.
    if inside.is_symlink():
        raise NMTError(f"{key}={path}: {inside} is a link; pass its target")
    # A run contains its model; a model directory may have been copied out of a run.
    for candidate in (inside, folder):
        if (candidate / "config.json").is_file():
            return candidate
    still_training = (
        f"{key}={path}: still training; wait, or run `nmt average {path} output=FOLDER` for a model"
    )
    # A training run holds this lock. If it is free, there is another reason.
    with locked_file(folder / LOCK, False, still_training, wait=0):
        raise NMTError(f"{key}={path}: {why_no_model(folder, path)}")


def why_no_model(folder: Path, path: str) -> str:
    """Why there is no model in a folder that the user named `path`."""
    # The default, which the user need not have typed.
    if not folder.exists() and path == "runs/latest":
        return "train a model first: `nmt preprocess`, then `nmt train`"
    if not folder.exists():
        return "no such folder"
    if any(folder.glob("checkpoints/*.ckpt")):
        return f"not averaged yet; run `nmt average run={path}`, or let `nmt train` finish"
    return "neither a run nor a model directory (no config.json)"


def read_description(folder: Path) -> ModelDescription:
    """Read a model directory's description.

    Raises NMTError if it is malformed or from another version or program.
    """
    path = folder / "config.json"
    tree = read_mapping(path, parse_json)
    # Checked before the rest, because another version may have other fields.
    version = tree.get("format_version")
    if version is None:
        raise NMTError(
            f"{path}: not an nmt model, perhaps an export for another program; pass the run or "
            "its model directory"
        )
    check_version(path, version, FORMAT_VERSION)
    description = build_stored(ModelDescription, tree, str(path))
    # Checked as a configuration is, and completed with the defaults of fields that it lacks.
    description.model = to_tree(build_stored(ModelConfig, description.model, str(path), "model."))
    # Languages become parts of file names.
    if "/" in description.source + description.target:
        raise NMTError(f"{path}: its languages cannot be used in file names")
    check_training(path, description.training)
    return description


def check_training(path: Path, training: dict[str, Any]) -> None:
    """Raise NMTError if an entry of `training` does not have its type; None is not a value."""
    kinds = {field.name: field.type for field in fields(TrainingRecord)}
    for key, value in training.items():
        if key not in kinds:
            continue
        # nmt leaves out unknown entries, so null was written by another program.
        if value is None or not matches(value, kinds[key]):
            raise NMTError(f"{path}, training: {key} has the wrong type")


def architecture(model: dict[str, Any]) -> dict[str, Any]:
    """The model keys that the weights depend on, with defaults filled in."""
    options = asdict(ModelConfig(**model))
    # A name and what only training uses change neither shapes nor outputs.
    del options["name"]
    del options["dropout"]
    del options["checkpointing"]
    # Training predicts all entries.
    del options["untrained"]
    return options


def within(tree: Any, *keys: str) -> Any:
    """The value at these keys in nested mappings; None if there is none."""
    # Any level may be missing, or may not be a mapping in a file from elsewhere.
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def check_direction(where: str, description: ModelDescription, source: str, target: str) -> None:
    """Raise NMTError unless a corpus has the same languages as the model that `where` names."""
    if (description.source, description.target) == (source, target):
        return
    raise NMTError(
        f"{where} is {description.source} to {description.target}, but the corpus is {source} to "
        f"{target}; data.source and data.target set the corpus languages"
    )


def structured_targets_of(description: ModelDescription) -> StructuredTargets | None:
    """The StructuredTargets of a model of structures, such as trees; None for a model of text."""
    return structured_targets(within(description.training, "config", "data", "kind"))


def trained_directions(description: ModelDescription) -> list[tuple[str, str]]:
    """The directions that a model with tags of both languages was trained on, without duplicates.

    Empty for other models, and for imported ones.
    """
    data = within(description.training, "config", "data")
    sources = within(data, "sources")
    # Either may have any form in a file from elsewhere.
    entries = sources if isinstance(sources, list) and sources else [data]
    directions = []
    for entry in entries:
        match = DIRECTION.fullmatch(str(within(entry, "tag")))
        if match and match["source"]:
            directions.append((match["source"], match["target"]))
    return [*dict.fromkeys(directions)]


def joined_pairs(description: ModelDescription) -> int:
    """The maximum number of consecutive pairs that were joined in training (data.join); 1: none."""
    data = within(description.training, "config", "data")
    sources = within(data, "sources")
    most = 1
    # Either may have any form in a file from elsewhere.
    for entry in [data, *(sources if isinstance(sources, list) else [])]:
        join = within(entry, "join")
        if type(join) is int:
            most = max(most, min(join, MOST_JOINED))
    return most


def example_languages(description: ModelDescription) -> dict[str, str]:
    """The options `source` and `target` that a multilingual model needs, as an example."""
    trained = trained_directions(description)
    source, target = trained[0] if trained else ("en", "de")
    options = {}
    if description.source == MULTIPLE:
        options["source"] = source
    if description.target == MULTIPLE:
        options["target"] = target
    return options


def input_of(description: ModelDescription) -> str:
    """The options and the input of a command that translates with a model, as an example."""
    options = example_languages(description)
    words = [f"{key}={value}" for key, value in options.items()]
    source = options.get("source", description.source)
    return " ".join([*words, f"< input.{source}"])


def direction_in_words(description: ModelDescription) -> str:
    """The languages of a model, such as `from en to de`."""
    source = description.source
    target = description.target
    if source == target == MULTIPLE:
        return "between many languages"
    if source == MULTIPLE:
        return f"from many languages to {target}"
    if target == MULTIPLE:
        return f"from {source} to many languages"
    return f"from {source} to {target}"


def is_parser(description: ModelDescription) -> bool:
    """True if the model was trained to produce structures, such as trees, not text."""
    return structured_targets_of(description) is not None


def tokenizer_settings(description: ModelDescription) -> dict[str, Any]:
    """The vocabulary's settings, as in TokenizerConfig.

    Models without a training configuration were imported.
    """
    stored = within(description.training, "config", "tokenizer")
    if not stored:
        stored = {"kind": description.record.vocabulary or "marian"}
    settings = with_defaults(TokenizerConfig, stored)
    return {
        "kind": str(settings["kind"]),
        "vocabulary_size": description.vocabulary_size,
        "normalization": str(settings["normalization"]),
    }


def positions(description: ModelDescription) -> int | None:
    """Maximum number of tokens, excluding the end symbol, that a model has positions for.

    None: no limit.
    """
    if description.model["positions"] != "learned":
        return None
    # Sinusoids (section 3.5) continue to any length; only a table of learned positions ends.
    return int(description.model["max_positions"]) - 1


def expected_search(decode: DecodeConfig, description: ModelDescription) -> DecodeConfig:
    """The search options, with the length penalty that an imported model expects.

    If the user set its kind, the options stay as they are.
    """
    kind = description.record.length_penalty_kind
    alpha = description.record.length_penalty
    # Only imported models have these entries: Marian's penalty differs from that of GNMT.
    if kind is None or alpha is None or decode.length_penalty_kind is not None:
        return decode
    # The same number means another penalty in the other formula, so it cannot just be passed on.
    if decode.length_penalty != DecodeConfig.length_penalty:
        raise NMTError(
            f"decode.length_penalty={decode.length_penalty}: the model expects {alpha} with kind "
            f"{kind}; to change it, also pass decode.length_penalty_kind=KIND"
        )
    return replace(decode, length_penalty=alpha, length_penalty_kind=kind)
