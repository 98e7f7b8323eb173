"""The metadata at the beginning of a model card, in the form of the Hugging Face Hub.

https://huggingface.co/docs/hub/model-cards describes the keys.
"""

import re
from typing import Any

from nmt.config import MULTIPLE
from nmt.extensions import CorpusEntry
from nmt.files.description import (
    ModelDescription,
    TrainingRecord,
    trained_directions,
    within,
)
from nmt.files.markdown import on_one_line, printable
from nmt.registry import entries_of

CODE_OF_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""A language code that the hub accepts."""
NAME_OF_DATASET = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.A)
"""The name of a dataset on the hub, such as wmt/wmt14."""
UNDETERMINED = "und"
"""The code of a language that is not known (ISO 639-2)."""


def front_matter(description: ModelDescription, library: str) -> str:
    """The metadata of a model for a library: its languages, license, origin and score, in YAML."""
    # Here, because completion must not load it.
    import yaml

    tree = metadata(description, library)
    # Strings may come from files that anyone has written; the library quotes them as needed.
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n\n"


def metadata(description: ModelDescription, library: str) -> dict[str, Any]:
    record = description.record
    tree: dict[str, Any] = {}
    languages = languages_of(description)
    if languages:
        tree["language"] = languages
    if record.license is not None:
        tree["license"] = record.license
    tree |= {"library_name": library, "pipeline_tag": "translation"}
    if record.base_model is not None:
        tree["base_model"] = record.base_model
    datasets = datasets_of(record)
    if datasets:
        tree["datasets"] = datasets
    if record.score:
        tree["metrics"] = [metric_id(record.score)]
        tree["model-index"] = [model_index(description, record)]
    return tree


def languages_of(description: ModelDescription) -> list[str]:
    """The codes of a model's languages in the form of the hub, such as de for deu_Latn."""
    directions = trained_directions(description)
    if not directions:
        directions = [(description.source, description.target)]
    codes = dict[str, None]()
    for direction in directions:
        if MULTIPLE in direction:
            return ["multilingual"]
        # A language may be in several directions; each code is listed once.
        codes |= dict.fromkeys(map(hub_code, direction))
    return [code for code in codes if code != UNDETERMINED]


def hub_code(language: str) -> str:
    """A language code as the hub has it; UNDETERMINED if the language is unknown."""
    # Here, because completion must not load it.
    import langcodes

    if CODE_OF_LANGUAGE.fullmatch(language):
        return language
    try:
        # Of codes in another form, such as deu_Latn, only the language counts.
        return langcodes.get(language).language or UNDETERMINED
    except ValueError:  # not a language code
        return UNDETERMINED


def datasets_of(record: TrainingRecord) -> list[str]:
    """The datasets on the hub that a model was trained on."""
    data = within(record.config, "data")
    # The description is a file of the user, so it may have any form.
    if not isinstance(data, dict):
        return []
    sources = data.get("sources")
    if not isinstance(sources, list) or not sources:
        sources = [{}]
    names = []
    for source in sources:
        # In a mixture, each source has its own values of some keys.
        corpus = data | source if isinstance(source, dict) else data
        entry = entries_of(CorpusEntry).get(str(corpus.get("kind")))
        # Nothing says that a local copy is the same as the dataset.
        if entry is None or entry.dataset is None or corpus.get("path"):
            continue
        name = corpus.get(entry.dataset)
        if isinstance(name, str) and NAME_OF_DATASET.fullmatch(name):
            names.append(name)
    return [*dict.fromkeys(names)]


def metric_id(score: dict[str, Any]) -> str:
    """The name of a metric on the hub, such as bleu."""
    return printable(on_one_line(score["name"])).lower()


def model_index(description: ModelDescription, record: TrainingRecord) -> dict[str, Any]:
    """The score on the validation set, with its signature."""
    assert record.score is not None
    score = record.score
    corpus = within(description.training, "config", "data", "name") or "unknown"
    name = printable(on_one_line(score["name"]))
    metric = {
        "type": metric_id(score),
        "name": name,
        "value": round(float(score["value"]), 2),
        "args": {"signature": printable(on_one_line(score["signature"]))},
    }
    dataset = {
        "type": printable(on_one_line(corpus)),
        "name": printable(on_one_line(corpus)),
        "split": "validation",
    }
    task = {"type": "translation", "name": "Translation"}
    result = {"task": task, "dataset": dataset, "metrics": [metric]}
    return {"name": printable(on_one_line(description.model["name"])), "results": [result]}
