"""The output of `nmt runs RUN`: languages, corpus, training, scores and exports of one run."""

import json
import shlex
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt import data, files, text, training, translation
from nmt.config import NMTError, in_words, matches, structured_targets
from nmt.files import ModelDescription, direction_in_words, input_of, within

LARGEST_STATEMENT = 2**20
"""The maximum size of a bundle.json to read, in bytes."""
Detail = tuple[str, str]


def details_of(run: Path) -> list[Detail]:
    """What to print about a run or model directory: pairs of a name and a value.

    Empty without a readable model or configuration.
    """
    details: list[Detail] = []
    with suppress(NMTError):
        folder = files.find_model_directory(str(run))
        description = files.read_description(folder)
        details += about_model(description)
        # The description says enough about a model whose vocabulary cannot be read.
        with suppress(NMTError):
            details += about_targets(folder)
        details += about_training(description.training)
        config = within(description.training, "config")
        details += about_corpus(config if isinstance(config, dict) else {})
        command = command_for(run, description)
        details += scores_of_bundles(run)
        details += exports(folder)
        details.append(("command", command))
        details.append(settings_of(run))
        return details
    # A run that has not finished has no model, but a configuration.
    with suppress(NMTError):
        config = training.read_config(run)
        source = within(config, "data", "source")
        target = within(config, "data", "target")
        details.append(("languages", f"{source} to {target}"))
        details += about_corpus(config)
        details.append(settings_of(run))
    return details


def settings_of(run: Path) -> Detail:
    """The command that shows the configuration."""
    return "settings", f"nmt config {shlex.quote(str(run))}"


def about_model(description: ModelDescription) -> Iterator[Detail]:
    model = description.model
    layers = f"{model.get('encoder_layers')} + {model.get('decoder_layers')} layers"
    yield "languages", direction_in_words(description).removeprefix("from ")
    yield "model", f"{model.get('name')}, d_model {model.get('d_model')}, {layers}"
    yield "vocabulary", f"{description.vocabulary_size:,} subwords"


def about_targets(folder: Path) -> Iterator[Detail]:
    """The target languages of a multilingual model: the values of `target=`."""
    codes = translation.languages(text.read_tokenizer(folder))
    if codes:
        yield "targets", f"{', '.join(codes)} ({len(codes)} languages)"


def about_training(record: dict[str, Any]) -> Iterator[Detail]:
    """How a model was trained or imported, from the training record of its description."""
    imported = record.get("imported")
    if imported:
        yield "origin", f"{imported}, imported"
    base = record.get("base_model")
    if base:
        yield "base model", base
    terms = record.get("license")
    if terms:
        yield "license", terms
    seconds = record.get("seconds")
    if seconds:
        devices = record.get("devices", "unknown devices")
        tokens = f"{record.get('tokens', 0):,} target tokens"
        yield "training", f"{files.duration(seconds)} on {devices}, {tokens}"
    averaged = record.get("averaged")
    if averaged:
        yield "weights", files.weights_in_words(averaged, {})
    score = record.get("score", {})
    # config.json may come from another user: format only what has the right type.
    if matches(score.get("value"), float):
        value = f"{score.get('name')} {score['value']:.2f}"
        sentences = f"{score.get('sentences')} sentences of the validation set"
        yield "validation", f"{value} on {sentences}  {score.get('signature')}"


def about_corpus(config: dict[str, Any]) -> Iterator[Detail]:
    init = config.get("init")
    if init:
        yield "began with", str(init)
    prepared = config.get("prepared")
    if not isinstance(prepared, str):
        return
    try:
        pairs = data.read_manifest(Path(prepared)).counts["train"]["kept"]
        yield "corpus", f"{prepared}, {pairs:,} pairs"
    except (NMTError, KeyError):
        yield "corpus", f"{prepared} (not found)"


def scores_of_bundles(run: Path) -> Iterator[Detail]:
    """The scores in the bundles that `nmt cite` wrote into the run."""
    # Read here, so that the core needs no import from the plugin that writes these bundles.
    for path in sorted(run.glob("citation-*.zip")):
        # A damaged bundle, or one that nmt did not write, has no scores to show.
        with suppress(
            OSError, zipfile.BadZipFile, ValueError, LookupError, TypeError, NotImplementedError
        ):
            with zipfile.ZipFile(path) as archive:
                # A zip bomb: the size is checked before anything is unpacked.
                if archive.getinfo("bundle.json").file_size > LARGEST_STATEMENT:
                    continue
                stated = json.loads(archive.read("bundle.json"))
            scores = [f"{score['name']} {score['value']:.2f}" for score in stated["scores"]]
            yield str(stated["test_set"]), f"{', '.join(scores)}  {path}"


def exports(model: Path) -> Iterator[Detail]:
    """The folders in the model directory, where `nmt export` writes by default."""
    names = []
    for path in sorted(model.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            names.append(str(path))
    if names:
        yield "exports", ", ".join(names)


def command_for(run: Path, description: ModelDescription) -> str:
    """The command line that uses a model."""
    kind = within(description.training, "config", "data", "kind")
    # Parsers have a separate command.
    structured = structured_targets(in_words(kind))
    command = structured.command if structured else "translate"
    return f"nmt {command} {shlex.quote(str(run))} {input_of(description)}"
