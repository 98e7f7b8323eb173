"""The model directory except for its weights, which nmt.model reads so that this module need not load torch.

model.safetensors   weights
config.json         format version, model configuration, languages, vocabulary
tokenizer.model     sentencepiece model, or word-pieces as JSON
README.md           model card
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from nmt import __version__
from nmt.config import (
    DecodeConfig,
    ModelConfig,
    NMTError,
    TokenizerConfig,
    build_stored,
    facts_of_kind,
    matches,
    one_line,
    require,
    to_tree,
    with_defaults,
)
from nmt.files import cell
from nmt.files.disk import (
    LOCK,
    block,
    check_regular,
    check_version,
    code,
    locked_file,
    parse_json,
    plain,
    read_mapping,
)

FORMAT_VERSION = 1
MODEL_FILES = ("config.json", "tokenizer.model", "model.safetensors")
EMBEDDINGS = (
    "source_embedding.weight",
    "target_embedding.weight",
    "output.weight",
)  # may share a matrix (section 3.4)
FLOATS = {"F64", "F32", "F16", "BF16"}
RARE_LETTERS = "rare"
"""The key of the letters that a model's training sources have too rarely, beside the characters
that it can learn (`characters` in `training`)."""
Shapes = dict[str, tuple[int, ...]]
TRAINING: dict[str, Any] = {
    "averaged": list[int],
    "candidates": dict[str, float],
    "versions": dict[str, str],
}
TRAINING |= dict.fromkeys(("updates", "tokens"), int) | dict.fromkeys(
    ("seconds", "length_penalty"), float
)
TRAINING |= dict.fromkeys(("devices", "corpus", "init", "length_penalty_kind", "imported"), str)
TRAINING |= dict.fromkeys(("score", "config"), dict[str, Any])
"""Optional entries of `training` and their types."""


@dataclass
class ModelDescription:
    """`config.json` of a model directory."""

    model: dict[str, Any]  # ModelConfig as a mapping
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str  # SHA-256 of tokenizer.model
    training: dict[
        str, Any
    ]  # entries of TRAINING and, if recorded, the lengths and characters of the training pairs
    format_version: int = FORMAT_VERSION


def find_model_directory(path: str, key: str = "run") -> Path:
    """Find the model directory in a run, or return `path` if it is one; otherwise raise NMTError, which names `key`."""
    folder = Path(path)
    require(
        not (folder / "model").is_symlink(),
        f"{key}={path}: {folder / 'model'} is a link; pass its target",
    )
    for candidate in (folder / "model", folder):
        if (candidate / "config.json").is_file():
            return candidate
    hint = "neither a run nor a model directory (no config.json)"
    if not folder.exists():
        hint = (
            "train a model first: `nmt preprocess`, then `nmt train`"
            if path == "runs/latest"
            else "no such folder"
        )
    elif any(folder.glob("checkpoints/*.ckpt")):
        hint = f"not averaged yet; run `nmt average run={path}`, or let `nmt train` finish"
    still = (
        f"{key}={path}: still training; wait, or run `nmt average {path} output=FOLDER` for a model"
    )
    with locked_file(folder / LOCK, False, still, wait=0):
        raise NMTError(f"{key}={path}: {hint}")


def read_description(folder: Path) -> ModelDescription:
    """Read a model directory's description; NMTError if it is malformed or from another version or program."""
    path = folder / "config.json"
    tree = read_mapping(path, parse_json)
    problem = f"{path}: not an nmt model, perhaps an export for another program; pass the run or its model directory"
    require(tree.get("format_version") is not None, problem)
    check_version(path, tree.get("format_version"), FORMAT_VERSION)
    description = build_stored(ModelDescription, tree, str(path))
    description.model = to_tree(build_stored(ModelConfig, description.model, str(path), "model."))
    # Languages become parts of file names.
    require(
        "/" not in description.source + description.target,
        f"{path}: its languages cannot be used in file names",
    )
    for key, value in description.training.items():
        require(
            key not in TRAINING or matches(value, TRAINING[key]),
            f"{path}, training: {key} has the wrong type",
        )
    return description


def architecture(model: dict[str, Any]) -> dict[str, Any]:
    """The model keys that the weights depend on, with defaults filled in."""
    return {
        key: value
        for key, value in asdict(ModelConfig(**model)).items()
        if key not in ("name", "dropout")
    }


def within(tree: Any, *keys: str) -> Any:
    """The value at these keys in nested mappings; None if there is none."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def check_direction(where: str, description: ModelDescription, source: str, target: str) -> None:
    """Raise NMTError unless a corpus has the same languages as the model that `where` names."""
    is_same = (description.source, description.target) == (source, target)
    problem = f"{where} is {description.source} to {description.target}, but the corpus is {source} to {target}"
    require(is_same, f"{problem}; data.source and data.target set the corpus languages")


def facts_of_corpus(description: ModelDescription) -> Mapping[str, Any]:
    return facts_of_kind(within(description.training, "config", "data", "kind"))


def is_parser(description: ModelDescription) -> bool:
    """True if the model was trained to produce structures, such as trees, not text."""
    return bool(facts_of_corpus(description).get("structured"))


def tokenizer_settings(description: ModelDescription) -> dict[str, Any]:
    """The vocabulary's settings, as in TokenizerConfig; models without a training configuration are Marian's."""
    stored = within(description.training, "config", "tokenizer") or {"kind": "marian"}
    settings = with_defaults(TokenizerConfig, stored)
    return {
        "kind": str(settings["kind"]),
        "vocabulary_size": description.vocabulary_size,
        "normalization": str(settings["normalization"]),
    }


def positions(description: ModelDescription) -> int | None:
    """Maximum number of tokens, excluding the end symbol, that a model has positions for; None: no limit."""
    return (
        int(description.model["max_positions"]) - 1
        if description.model["positions"] == "learned"
        else None
    )


def expected_search(decode: DecodeConfig, description: ModelDescription) -> DecodeConfig:
    """The search options, with the length penalty that an imported model expects, unless the user set its kind."""
    kind, alpha = (
        description.training.get(key) for key in ("length_penalty_kind", "length_penalty")
    )
    if kind is None or alpha is None or decode.length_penalty_kind is not None:
        return decode
    require(
        decode.length_penalty == DecodeConfig.length_penalty,
        f"decode.length_penalty={decode.length_penalty}: the model expects {alpha} with kind {kind}; "
        "to change it, also pass decode.length_penalty_kind=KIND",
    )
    return replace(decode, length_penalty=alpha, length_penalty_kind=kind)


def tied(model: ModelConfig) -> tuple[str, ...]:
    """The names of the tied matrices, excluding the source embedding if the source has a separate vocabulary."""
    return (
        () if not model.tied_embeddings else EMBEDDINGS[model.source_vocabulary_size is not None :]
    )


def stored_shapes(path: Path) -> Shapes:
    """Names and shapes of the tensors in a safetensors file; NMTError if they are not weights."""
    check_regular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {str(part.get_dtype()) for part in slices.values()}
            shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
    except (OSError, SafetensorError) as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    others = ", ".join(sorted(kinds - FLOATS))
    require(
        not others,
        f"{path}: contains numbers of type {others}; weights must be {', '.join(sorted(FLOATS))}",
    )
    return shapes


def duration(seconds: float) -> str:
    """A rough duration: 42 seconds, 25 minutes, 1.5 hours or 12 days."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.{int(seconds < 9.5 * size and unit != 'minutes')}f} {unit}"
    return f"{max(seconds, 2):.0f} seconds"


def weights_in_words(updates: list[int], losses: dict[str, float]) -> str:
    """List the averaged checkpoints and the validation losses that they were chosen by."""
    names = ", ".join(f"{update:,}" for update in updates)
    text = (
        f"mean of the checkpoints at updates {names}"
        if len(updates) > 1
        else f"checkpoint at update {names}"
    )
    if len(losses) < 2:
        return text
    best = min(losses, key=losses.__getitem__)
    others = "; ".join(f"{loss:.3f} for {name}" for name, loss in losses.items() if name != best)
    return f"{text}: validation loss {losses[best]:.3f}, the lowest of {len(losses)} candidates ({others})"


def model_card(description: ModelDescription, parameters: int) -> str:
    """README.md of a model directory: the model's origin, size, training, cost and quality."""
    training, model = description.training, description.model
    title = (
        f"{plain(model['name'])} from {plain(description.source)} to {plain(description.target)}"
    )
    layers = (
        f"{model['encoder_layers']} + {model['decoder_layers']} layers, d_model {model['d_model']}"
    )
    size = f"{layers}, d_ff {model['d_ff']}, {model['heads']} heads, {plain(model['norm'])}-norm"
    rows = {
        "Model": f"{size}, {plain(model['activation'])}; {parameters:,} parameters",
        "Vocabulary": f"{description.vocabulary_size:,} ({plain(tokenizer_settings(description)['kind'])})",
    }
    if "imported" in training:
        rows["Origin"] = f"{plain(training['imported'])}, imported with nmt {__version__}"
        rows["Length penalty"] = (
            f"{training['length_penalty']} ({plain(training['length_penalty_kind'])})"
        )
    else:
        config, score, quality = training["config"], training.get("score"), "not measured"
        if score:
            quality = f"validation {plain(score['name'])} {score['value']:.2f} on {score['sentences']:,} sentences, "
            quality += code(score["signature"])
        corpus = f"{plain(config['data']['name'])} ({plain(config['data']['kind'])})"
        counts = f"{training['updates']:,} updates, {training['tokens']:,} target tokens, seed {plain(config['seed'])}"
        start = (
            f"; from {plain(config['init'])}, weights {code(training['init'][:16])}"
            if "init" in training
            else ""
        )
        rows |= {
            "Corpus": f"{corpus}, fingerprint {cell(code(training['corpus'][:16]))}",
            "Training": f"{counts}, nmt {plain(training['versions'].get('nmt', __version__))}{cell(start)}",
            "Cost": f"{duration(training['seconds'])} on {plain(training['devices'])}",
            "Weights": cell(weights_in_words(training["averaged"], training.get("candidates", {}))),
            "Quality": cell(quality),
        }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    command = facts_of_corpus(description).get("command", "translate")
    usage = block(f"nmt {command} run=THIS_FOLDER < input.{description.source}")
    return f"# {title}\n\nA Transformer (Vaswani et al. 2017).\n\n| | |\n|---|---|\n{table}\n\n{usage}\n"
