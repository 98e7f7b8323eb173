"""The model card: README.md of a model directory, written from its config.json."""

from typing import Any

from nmt import __version__
from nmt.files.description import ModelDescription
from nmt.files.markdown import block, cell, code, plain


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


def imported_card(description: ModelDescription, parameters: int) -> str:
    """Origin and size of an imported model, in Markdown."""
    model, source, target = description.model, plain(description.source), plain(description.target)
    layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers"
    size = f"{layers}, d_model {model['d_model']}, d_ff {model['d_ff']}, {model['heads']} heads"
    kind = f"length penalty {description.training['length_penalty']} ({description.training['length_penalty_kind']})"
    return f"""# {source}-{target}, imported

A Transformer that translates from {source} to {target}, {plain(description.training["imported"])},
imported with nmt {__version__}.

| | |
|---|---|
| Vocabulary | {description.vocabulary_size:,} |
| Model | {size}, {plain(model["norm"])}-norm, {plain(model["activation"])}; {parameters:,} parameters; {kind} |

{block(f"nmt translate run=THIS_FOLDER < input.{description.source}")}
"""


def certified(card: str, certificate: list[str]) -> str:
    """A card with what was found when the model was compared with that of another program."""
    return f"{card}\nCompared with the original:\n\n{block(chr(10).join(certificate))}\n"


def model_card(description: ModelDescription, parameters: int) -> str:
    """Data, size, training, cost and quality of a model, in Markdown."""
    training, model = description.training, description.model
    config = training["config"]
    data, kind = plain(config["data"]["name"]), plain(config["data"]["kind"])
    layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers"
    size = f"{layers}, d_model {model['d_model']}, d_ff {model['d_ff']}, {model['heads']} heads"
    source, target = plain(description.source), plain(description.target)
    parses = config["data"]["kind"] == "treebank"
    does = "parses sentences" if parses else f"translates from {source} to {target}"
    command = f"nmt {'parse' if parses else 'translate'} run=THIS_FOLDER < input.{description.source}"
    counts = f"{training['updates']:,} updates, {training['tokens']:,} target tokens, seed {plain(config['seed'])}"
    init = training.get("init")
    start = f"| Start | {plain(config['init'])}, weights {code(init[:16])} |\n" if init else ""
    return f"""# {data}, {plain(model["name"])}: {source}-{target}

A Transformer (Vaswani et al. 2017) that {does}.
Trained with nmt {plain(training["versions"].get("nmt", __version__))}.

| | |
|---|---|
| Corpus | {data} ({kind}), fingerprint {cell(code(training["corpus"][:16]))} |
| Vocabulary | {description.vocabulary_size:,} ({plain(config["tokenizer"]["kind"])}, joint) |
| Model | {size}, {plain(model["norm"])}-norm; {parameters:,} parameters |
| Training | {counts} |
{start}| Cost | {duration(training["seconds"])} on {plain(training["devices"])} |
| Weights | {cell(weights_in_words(training["averaged"], training.get("candidates", {})))} |
| Quality | {cell(quality(training.get("score")))} |

{block(command)}
"""
