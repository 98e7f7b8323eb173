"""What `nmt runs RUN` prints about one run: its languages, corpus, training, scores, exports and how to use it."""

import json
import shlex
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt import data, files, training
from nmt.config import NMTError, facts_of_kind, in_words, matches
from nmt.files import ModelDescription, within

LARGEST_STATEMENT = 2**20  # bytes
Detail = tuple[str, str]


def details_of(run: Path) -> list[Detail]:
    """Names and values to print; empty without a readable model or configuration."""
    details = list[Detail]()
    with suppress(NMTError):
        folder = files.find_model_directory(str(run))
        description = files.read_description(folder)
        details += [*about_model(description), *about_training(description.training)]
        config = within(description.training, "config")
        details += about_corpus(config if isinstance(config, dict) else {})
        details += [*test_scores(run), *exports(folder), ("command", command_for(run, description))]
        return details
    with suppress(NMTError):
        config = training.read_config(run)
        languages = f"{within(config, 'data', 'source')} to {within(config, 'data', 'target')}"
        details += [("languages", languages), *about_corpus(config)]
    return details


def about_model(description: ModelDescription) -> Iterator[Detail]:
    model = description.model
    layers = f"{model.get('encoder_layers')} + {model.get('decoder_layers')} layers"
    yield "languages", f"{description.source} to {description.target}"
    yield "model", f"{model.get('name')}, d_model {model.get('d_model')}, {layers}"
    yield "vocabulary", f"{description.vocabulary_size:,} subwords"


def about_training(record: dict[str, Any]) -> Iterator[Detail]:
    if imported := record.get("imported"):
        yield "origin", f"{imported}, imported"
    if seconds := record.get("seconds"):
        tokens = f", {record.get('tokens', 0):,} target tokens"
        yield (
            "training",
            f"{files.duration(seconds)} on {record.get('devices', 'unknown devices')}{tokens}",
        )
    if averaged := record.get("averaged"):
        yield "weights", files.weights_in_words(averaged, {})
    score = record.get("score", {})
    if matches(score.get("value"), float):
        sentences = f"{score.get('sentences')} sentences of the validation set"
        yield (
            "validation",
            f"{score.get('name')} {score['value']:.2f} on {sentences}  {score.get('signature')}",
        )


def about_corpus(config: dict[str, Any]) -> Iterator[Detail]:
    if init := config.get("init"):
        yield "began with", str(init)
    prepared = config.get("prepared")
    if not isinstance(prepared, str):
        return
    try:
        pairs = data.read_manifest(Path(prepared)).counts["train"]["kept"]
        yield "corpus", f"{prepared}, {pairs:,} pairs"
    except (NMTError, KeyError):
        yield "corpus", f"{prepared} (not found)"


def test_scores(run: Path) -> Iterator[Detail]:
    """The scores in the bundles that `nmt cite` wrote into the run."""
    for path in sorted(run.glob("citation-*.zip")):
        with suppress(
            OSError, zipfile.BadZipFile, ValueError, LookupError, TypeError, NotImplementedError
        ):
            with zipfile.ZipFile(path) as archive:
                if archive.getinfo("bundle.json").file_size > LARGEST_STATEMENT:
                    continue
                stated = json.loads(archive.read("bundle.json"))
            scores = ", ".join(
                f"{score['name']} {score['value']:.2f}" for score in stated["scores"]
            )
            yield str(stated["test_set"]), f"{scores}  {path}"


def exports(model: Path) -> Iterator[Detail]:
    """The folders in the model directory, where `nmt export` writes by default."""
    names = [
        str(path)
        for path in sorted(model.iterdir())
        if path.is_dir() and not path.name.startswith(".")
    ]
    if names:
        yield "exports", ", ".join(names)


def command_for(run: Path, description: ModelDescription) -> str:
    kind = within(description.training, "config", "data", "kind")
    command = facts_of_kind(in_words(kind)).get("command", "translate")
    return f"nmt {command} {shlex.quote(str(run))} < input.{description.source}"
