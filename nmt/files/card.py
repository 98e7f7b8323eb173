"""The model card: README.md of a model directory, written from its config.json."""

from typing import Any

from nmt import __version__
from nmt.files.description import ModelDescription
from nmt.files.foreign import block, cell, code, plain


def duration(seconds: float) -> str:
    """A rough duration: 42 seconds, 25 minutes, 1.5 hours or 12 days."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.{int(seconds < 9.5 * size and unit != 'minutes')}f} {unit}"
    return f"{max(seconds, 2):.0f} seconds"


def quality(score: dict[str, Any] | None) -> str:
    """A validation score with its signature, in Markdown."""
    if score is None:
        return "not measured"
    name, value, sentences = plain(score["name"]), score["value"], score["sentences"]
    return f"validation {name} {value:.2f} on {sentences:,} sentences, {code(score['signature'])}"


def weights_in_words(updates: list[int], losses: dict[str, float]) -> str:
    """The checkpoints whose mean a model is, and the validation losses by which they were chosen."""
    names = ", ".join(f"{update:,}" for update in updates)
    text = f"mean of the checkpoints at updates {names}" if len(updates) > 1 else f"checkpoint at update {names}"
    if len(losses) < 2:
        return text
    name = min(losses, key=losses.__getitem__)
    rest = "; ".join(f"{loss:.3f} for {other}" for other, loss in losses.items() if other != name)
    return f"{text}: validation loss {losses[name]:.3f}, the lowest of {len(losses)} candidates ({rest})"


def card(title: str, text: str, rows: dict[str, str], command: str) -> str:
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return f"# {title}\n\n{text}\n\n| | |\n|---|---|\n{table}\n\n{block(command)}\n"


def size(model: dict[str, Any]) -> str:
    layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers, d_model {model['d_model']}"
    return f"{layers}, d_ff {model['d_ff']}, {model['heads']} heads, {plain(model['norm'])}-norm"


def imported_card(description: ModelDescription, parameters: int) -> str:
    """Origin and size of an imported model, in Markdown."""
    model, training = description.model, description.training
    source, target = plain(description.source), plain(description.target)
    kind = f"length penalty {training['length_penalty']} ({training['length_penalty_kind']})"
    rows = {
        "Vocabulary": f"{description.vocabulary_size:,}",
        "Model": f"{size(model)}, {plain(model['activation'])}; {parameters:,} parameters; {kind}",
    }
    origin = f"{plain(training['imported'])},\nimported with nmt {__version__}."
    text = f"A Transformer that translates from {source} to {target}, {origin}"
    command = f"nmt translate run=THIS_FOLDER < input.{description.source}"
    return card(f"{source}-{target}, imported", text, rows, command)


def certified(card: str, certificate: list[str]) -> str:
    """A card with the result of a comparison with the model of another program."""
    return f"{card}\nCompared with the original:\n\n{block(chr(10).join(certificate))}\n"


def model_card(description: ModelDescription, parameters: int) -> str:
    """Data, size, training, cost and quality of a model, in Markdown."""
    training, model = description.training, description.model
    config, init = training["config"], training.get("init")
    seed = config["seed"]
    data, kind = plain(config["data"]["name"]), plain(config["data"]["kind"])
    source, target = plain(description.source), plain(description.target)
    parses = kind == "treebank"
    rows = {
        "Corpus": f"{data} ({kind}), fingerprint {cell(code(training['corpus'][:16]))}",
        "Vocabulary": f"{description.vocabulary_size:,} ({plain(config['tokenizer']['kind'])}, joint)",
        "Model": f"{size(model)}; {parameters:,} parameters",
        "Training": f"{training['updates']:,} updates, {training['tokens']:,} target tokens, seed {plain(seed)}",
        **({"Start": f"{plain(config['init'])}, weights {code(init[:16])}"} if init else {}),
        "Cost": f"{duration(training['seconds'])} on {plain(training['devices'])}",
        "Weights": cell(weights_in_words(training["averaged"], training.get("candidates", {}))),
        "Quality": cell(quality(training.get("score"))),
    }
    does = "parses sentences" if parses else f"translates from {source} to {target}"
    program = plain(training["versions"].get("nmt", __version__))
    text = f"A Transformer (Vaswani et al. 2017) that {does}.\nTrained with nmt {program}."
    command = f"nmt {'parse' if parses else 'translate'} run=THIS_FOLDER < input.{description.source}"
    return card(f"{data}, {plain(model['name'])}: {source}-{target}", text, rows, command)
