"""The commands for Python: `nmt.load`, `nmt.prepare` and `nmt.train`.

They take what a command line takes, as words, `"model=small"`, or as keys, `model="small"` and `optim={"factor": 2}`;
or the command's dataclass. See docs/python.md.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.commands import preprocess as preprocess_command, train as train_command, translate as translate_command
from nmt.config import (
    Command,
    ExperimentConfig,
    TranslateConfig,
    compose,
    flatten,
    in_words,
    keys_of,
    literal,
    require,
    set_text,
)

if TYPE_CHECKING:
    from nmt.translation import Translator


def configuration(command: Command, given: tuple[Any, ...], keys: dict[str, Any]) -> Any:
    """Compose the configuration of a command from words and keys, or return the one that is given."""
    record = command.config.__name__
    if len(given) == 1 and isinstance(given[0], command.config):
        require(not keys, f"{', '.join(keys)}: a {record} has its values already; change them there")
        return given[0]
    for item in given:
        is_word = isinstance(item, str | Path)
        require(is_word, f"{type(item).__name__}: give words and keys, or one {record} alone")
    return compose(command, [*map(str, given), *(override(command, *item) for item in flatten(keys).items())])


def override(command: Command, key: str, value: Any) -> str:
    """The override that sets a key to a Python value; ${} in a text is not an interpolation."""
    member = keys_of(command.config).get(key)
    if member and "literal" in member.metadata and value is not None:
        return set_text(key, str(value))
    if isinstance(value, list | tuple):
        return set_text(key, [literal(str(item)) for item in value])
    return set_text(key, literal(str(value))) if isinstance(value, str | Path) else f"{key}={in_words(value)}"


@dataclass
class Model:
    """A trained model, or an ensemble of several."""

    translator: "Translator"

    def translate(self, lines: Iterable[str]) -> list[str]:
        """The best translation of each line, in their order."""
        require(not isinstance(lines, str), "model.translate takes a list of texts, such as ['The house is old.']")
        rows = self.translator.translate([*lines])
        return [row[0].text for row in rows]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """log P of each target, given its source: the natural logarithm, end symbol included."""
        from nmt.translation import score_pairs

        return [score.log_probability for score in score_pairs(self.translator, [*pairs])]


def load(*words: str | Path | TranslateConfig, **keys: Any) -> Model:
    """Load the model of a run or a model directory, by default `runs/latest`; the keys are those of `nmt translate`."""
    from nmt.translation import find_models, load_translator

    config = configuration(translate_command.COMMAND, words, keys)
    for key, unset in (("input", "-"), ("output", "-"), ("text", None)):
        value = getattr(config, key)
        require(value == unset, f"{value}: nmt.load takes a run, or a model directory, and no {key}")
    options, engine = config.translator, config.translator.compute.engine
    require(engine in ("auto", "torch"), f"engine={engine}: nmt.load loads a model with torch")
    find_models(options.run)  # before the seconds that torch takes to load
    options = replace(options, compute=replace(options.compute, engine="torch"))
    return Model(load_translator(options, lambda notice: print(f"nmt: {notice}", file=sys.stderr)))


def prepare(*words: str | Path | ExperimentConfig, **keys: Any) -> Path:
    """Prepare a corpus as `nmt preprocess` does, unless that is done already; returns its folder."""
    config = configuration(preprocess_command.COMMAND, words, keys)
    preprocess_command.run(config)
    return Path(config.prepared)


def train(*words: str | Path | ExperimentConfig, **keys: Any) -> Path:
    """Train a model, or continue where training stopped, as `nmt train` does; returns the folder of the run.

    If a signal stops it, it saves and raises KeyboardInterrupt, and the same call continues from there.
    """
    config = configuration(train_command.COMMAND, words, keys)
    if train_command.run(config):
        raise KeyboardInterrupt
    return Path(config.run)
