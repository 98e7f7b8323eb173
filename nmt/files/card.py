"""The model card: README.md of a model directory."""

from nmt import __version__
from nmt.files.description import (
    ModelDescription,
    TrainingRecord,
    direction_in_words,
    example_languages,
    input_of,
    structured_targets_of,
    tokenizer_settings,
)
from nmt.files.front_matter import front_matter
from nmt.files.markdown import block, cell, code, plain

UNITS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0))
"""Units of time, in seconds."""
FINGERPRINT_DIGITS = 16
"""The number of digits of a SHA-256 that the card shows."""
THIS_FOLDER = "THIS_FOLDER"
"""Stands for the model directory in a card, which may be copied anywhere."""


def duration(seconds: float) -> str:
    """A rough duration: 42 seconds, 25 minutes, 1.5 hours or 12 days."""
    for unit, size in UNITS:
        # Below 1.5 of a unit, the next smaller one is more exact: 80 minutes, not 1.3 hours.
        if seconds >= 1.5 * size:
            # Two significant digits: 1.5 hours, but 12 days.
            has_decimal = seconds < 9.5 * size and unit != "minutes"
            decimals = 1 if has_decimal else 0
            return f"{seconds / size:.{decimals}f} {unit}"
    return f"{max(seconds, 2):.0f} seconds"


def weights_in_words(updates: list[int], losses: dict[str, float]) -> str:
    """List the averaged checkpoints and the validation losses that they were chosen by."""
    names = ", ".join(f"{update:,}" for update in updates)
    text = f"checkpoint at update {names}"
    if len(updates) > 1:
        text = f"mean of the checkpoints at updates {names}"
    # With a single candidate, there was no choice to explain.
    if len(losses) < 2:
        return text
    best = min(losses, key=losses.__getitem__)
    others = "; ".join(f"{loss:.3f} for {name}" for name, loss in losses.items() if name != best)
    return (
        f"{text}: validation loss {losses[best]:.3f}, the lowest of {len(losses)} candidates "
        f"({others})"
    )


def quality_in_words(record: TrainingRecord) -> str:
    """The score on the validation set, with its signature."""
    score = record.score
    if not score:
        return "not measured"
    value = f"{plain(score['name'])} {score['value']:.2f}"
    return f"validation {value} on {score['sentences']:,} sentences, {code(score['signature'])}"


def base_in_words(record: TrainingRecord) -> str:
    """The model on the hub that a model descends from, and its commit if that is known."""
    name = plain(record.base_model)
    if record.revision is None:
        return name
    return f"{name}, commit {plain(record.revision)}"


def rows_of_import(record: TrainingRecord) -> dict[str, str]:
    """The rows of the card for a model that nmt did not train."""
    kind = plain(record.length_penalty_kind)
    origin = plain(record.imported)
    if record.base_model is not None:
        origin += f" ({base_in_words(record)})"
    rows = {
        "Origin": f"{origin}, imported with nmt {__version__}",
        "License": plain(record.license or "not stated"),
        "Length penalty": f"{record.length_penalty} ({kind})",
    }
    if record.certificate is not None:
        when = " (before it was extended)" if record.extended else ""
        rows["Verified"] = plain(record.certificate) + when
    return rows


def rows_of_training(record: TrainingRecord) -> dict[str, str]:
    """The rows of the card for a model that nmt trained."""
    config = record.config
    assert config is not None
    assert record.corpus is not None
    assert record.versions is not None
    assert record.seconds is not None
    assert record.averaged is not None
    corpus = f"{plain(config['data']['name'])} ({plain(config['data']['kind'])})"
    # Names may come from files that anyone has written. Escaped, they cannot become links or HTML.
    fingerprint = code(record.corpus[:FINGERPRINT_DIGITS])
    counts = f"{record.updates:,} updates, {record.tokens:,} target tokens"
    version = plain(record.versions.get("nmt", __version__))
    start = ""
    if record.init is not None:
        weights = code(record.init[:FINGERPRINT_DIGITS])
        # `nmt learn` gives a model a parent, and keeps the configuration of its first training.
        name = f"{plain(config['init'])}, " if config["init"] else ""
        start = f"; from {name}weights {weights}"
    rows = {
        "Corpus": f"{corpus}, fingerprint {cell(fingerprint)}",
        "Training": f"{counts}, seed {plain(config['seed'])}, nmt {version}{cell(start)}",
        "Cost": f"{duration(record.seconds)} on {plain(record.devices)}",
        "Weights": cell(weights_in_words(record.averaged, record.candidates or {})),
        "Quality": cell(quality_in_words(record)),
    }
    # Known only if the training started from a model that was imported, or from one made from it.
    if record.base_model is not None:
        rows["Base model"] = base_in_words(record)
    if record.license is not None:
        rows["License"] = f"{plain(record.license)}, as the base model"
    return rows


def size_in_words(description: ModelDescription, parameters: int) -> str:
    model = description.model
    parts = [
        f"{model['encoder_layers']} + {model['decoder_layers']} layers",
        f"d_model {model['d_model']}",
        f"d_ff {model['d_ff']}",
        f"{model['heads']} heads",
        f"{plain(model['norm'])}-norm",
        plain(model["activation"]),
    ]
    return f"{', '.join(parts)}; {parameters:,} parameters"


def usage_in_shell(description: ModelDescription, run: str) -> str:
    """A command that translates a file with the model that `run` names."""
    # A parser is used by `nmt parse`, because `nmt translate` would return its trees as text.
    structured = structured_targets_of(description)
    command = structured.command if structured else "translate"
    return f"nmt {command} run={run} {input_of(description)}"


def usage_in_python(description: ModelDescription) -> str:
    """A program that translates a file with the model in THIS_FOLDER; empty for a parser."""
    if structured_targets_of(description):
        return ""
    options = example_languages(description)
    source = options.get("source", description.source)
    arguments = ["lines", *(f"{key}={value!r}" for key, value in options.items())]
    program = (
        "import nmt\n\n"
        f'model = nmt.load("{THIS_FOLDER}")\n'
        f"file = open({f'input.{source}'!r}, encoding='utf-8', newline='\\n')\n"
        'lines = [line.rstrip("\\r\\n") for line in file]\n'
        f'print(*model.translate({", ".join(arguments)}), sep="\\n")'
    )
    return f"\n{block(program, 'python')}\n"


def model_card(description: ModelDescription, parameters: int) -> str:
    """README.md of a model directory: the model's origin, size, training, cost and quality."""
    record = description.record
    name = plain(description.model["name"])
    vocabulary = plain(tokenizer_settings(description)["kind"])
    rows = {
        "Model": size_in_words(description, parameters),
        "Vocabulary": f"{description.vocabulary_size:,} ({vocabulary})",
    }
    if record.imported is not None:
        rows |= rows_of_import(record)
    else:
        rows |= rows_of_training(record)
    if record.extended is not None:
        rows["Extended"] = f"by {plain(record.extended)}, with `nmt extend`"
    table = "\n".join(f"| {title} | {value} |" for title, value in rows.items())
    usage = block(usage_in_shell(description, THIS_FOLDER))
    return (
        f"{front_matter(description, 'nmt-toolkit')}"
        f"# {name} {plain(direction_in_words(description))}\n\n"
        "A Transformer (Vaswani et al. 2017).\n\n"
        f"| | |\n|---|---|\n{table}\n\n{usage}\n"
        f"{usage_in_python(description)}"
    )
