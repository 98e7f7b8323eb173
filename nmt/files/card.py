"""The model card: README.md of a model directory, written from its config.json."""

from nmt import __version__
from nmt.files.description import ModelDescription
from nmt.files.foreign import block, cell, code, plain


def duration(seconds: float) -> str:
    """A rough duration: 42 seconds, 25 minutes, 1.5 hours or 12 days."""
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.{int(seconds < 9.5 * size and unit != 'minutes')}f} {unit}"
    return f"{max(seconds, 2):.0f} seconds"


def weights_in_words(updates: list[int], losses: dict[str, float]) -> str:
    """The checkpoints whose mean a model is, and the validation losses by which they were chosen."""
    names = ", ".join(f"{update:,}" for update in updates)
    text = f"mean of the checkpoints at updates {names}" if len(updates) > 1 else f"checkpoint at update {names}"
    if len(losses) < 2:
        return text
    name = min(losses, key=losses.__getitem__)
    rest = "; ".join(f"{loss:.3f} for {other}" for other, loss in losses.items() if other != name)
    return f"{text}: validation loss {losses[name]:.3f}, the lowest of {len(losses)} candidates ({rest})"


def card(description: ModelDescription, title: str, text: str, rows: dict[str, str], command: str) -> str:
    """A card that begins its table with the size of the vocabulary and the model."""
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    usage = block(f"nmt {command} run=THIS_FOLDER < input.{description.source}")
    return f"# {title}\n\nA Transformer{text}.\n\n| | |\n|---|---|\n{table}\n\n{usage}\n"


def model_size(description: ModelDescription) -> str:
    model = description.model
    layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers, d_model {model['d_model']}"
    return f"{layers}, d_ff {model['d_ff']}, {model['heads']} heads, {plain(model['norm'])}-norm"


def imported_card(description: ModelDescription, parameters: int) -> str:
    """Origin and size of an imported model, in Markdown."""
    training, activation = description.training, plain(description.model["activation"])
    penalty = f"length penalty {training['length_penalty']} ({training['length_penalty_kind']})"
    rows = {
        "Vocabulary": f"{description.vocabulary_size:,}",
        "Model": f"{model_size(description)}, {activation}; {parameters:,} parameters; {penalty}",
    }
    source, target = plain(description.source), plain(description.target)
    origin = f"{plain(training['imported'])},\nimported with nmt {__version__}"
    text = f" that translates from {source} to {target}, {origin}"
    return card(description, f"{source}-{target}, imported", text, rows, "translate")


def certified(card: str, certificate: list[str]) -> str:
    """A card with the result of a comparison with the model of another program."""
    return f"{card}\nCompared with the original:\n\n{block(chr(10).join(certificate))}\n"


def model_card(description: ModelDescription, parameters: int) -> str:
    """Data, size, training, cost and quality of a model, in Markdown."""
    training, source, target = description.training, plain(description.source), plain(description.target)
    config, init, score, quality = training["config"], training.get("init"), training.get("score"), "not measured"
    if score:
        quality = f"validation {plain(score['name'])} {score['value']:.2f} on {score['sentences']:,} sentences, "
        quality += code(score["signature"])
    data, parses = plain(config["data"]["name"]), config["data"]["kind"] == "treebank"
    rows = {
        "Corpus": f"{data} ({plain(config['data']['kind'])}), fingerprint {cell(code(training['corpus'][:16]))}",
        "Vocabulary": f"{description.vocabulary_size:,} ({plain(config['tokenizer']['kind'])}, joint)",
        "Model": f"{model_size(description)}; {parameters:,} parameters",
        "Training": f"{training['updates']:,} updates, {training['tokens']:,} target tokens, "
        f"seed {plain(config['seed'])}",
        **({"Start": f"{plain(config['init'])}, weights {code(init[:16])}"} if init else {}),
        "Cost": f"{duration(training['seconds'])} on {plain(training['devices'])}",
        "Weights": cell(weights_in_words(training["averaged"], training.get("candidates", {}))),
        "Quality": cell(quality),
    }
    does = "parses sentences" if parses else f"translates from {source} to {target}"
    program = plain(training["versions"].get("nmt", __version__))
    text = f" (Vaswani et al. 2017) that {does}.\nTrained with nmt {program}"
    title = f"{data}, {plain(description.model['name'])}: {source}-{target}"
    return card(description, title, text, rows, "parse" if parses else "translate")
