"""The commands for Python: `nmt.load`, `nmt.prepare` and `nmt.train`.

They take what a command line takes, as words, `"model=small"`, or as keys, `model="small"` and `optim={"factor": 2}`;
or the command's dataclass. docs/python.md shows them.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nmt.commands import preprocess as preprocess_command
from nmt.commands import train as train_command
from nmt.commands import translate as translate_command
from nmt.compose import Command, compose, set_text
from nmt.compose.overrides import in_yaml, literal
from nmt.config import ExperimentConfig, TranslateConfig
from nmt.data.manifest import flatten
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

Config = TypeVar("Config")


def configuration(kind: type[Config], command: Command, given: tuple[Any, ...], keys: dict[str, Any]) -> Config:
    """The configuration of a command: `given` as it is where it is one, else composed of words and keys."""
    if len(given) == 1 and isinstance(given[0], kind):
        if keys:
            raise NMTError(f"{', '.join(keys)}: a {kind.__name__} has its values already; change them there")
        return given[0]
    config = compose(command, [*map(str, given), *(override(*item) for item in flatten(keys).items())])
    assert isinstance(config, kind)
    return config


def override(key: str, value: Any) -> str:
    """The override that sets a key to a value of Python; a text names no other key."""
    if isinstance(value, list | tuple):
        return set_text(key, [literal(str(item)) for item in value])
    return set_text(key, literal(str(value))) if isinstance(value, str | Path) else f"{key}={in_yaml(value)}"


@dataclass
class Model:
    """A trained model, or an ensemble of several."""

    translator: "Translator"

    def translate(self, lines: Iterable[str]) -> list[str]:
        """The best translation of each line, in their order."""
        return [found[0].text for found in self.translator.translate(list(lines))]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """log P of each target, given its source: the natural logarithm, end symbol included."""
        from nmt.translation.likelihood import score_pairs

        return [score.log_probability for score in score_pairs(self.translator, list(pairs))]


def load(*words: str | Path | TranslateConfig, **keys: Any) -> Model:
    """The model of a run or a model directory, `runs/latest` where none is named, with the keys of `nmt translate`."""
    from nmt.search.torch_engine import TorchEngine
    from nmt.translation.load import find_models, load_translator

    config = configuration(TranslateConfig, translate_command.COMMAND, words, keys)
    find_models(config.run)  # before the seconds that torch takes to load
    translator = load_translator(config, lambda notice: print(f"nmt: {notice}", file=sys.stderr))
    if not isinstance(translator.engine, TorchEngine):
        raise NMTError(f"engine={config.engine}: from Python, torch translates; leave engine out")
    return Model(translator)


def prepare(*words: str | Path | ExperimentConfig, **keys: Any) -> Path:
    """Prepare a corpus, as `nmt preprocess` does, or do nothing where that is done; gives its folder."""
    config = configuration(ExperimentConfig, preprocess_command.COMMAND, words, keys)
    preprocess_command.run(config)
    return Path(config.prepared)


def train(*words: str | Path | ExperimentConfig, **keys: Any) -> Path:
    """Train a model, or go on where it stopped, as `nmt train` does; gives the folder of the run.

    KeyboardInterrupt where a signal stopped it: it has saved, and the same call goes on from there.
    """
    config = configuration(ExperimentConfig, train_command.COMMAND, words, keys)
    if train_command.run(config):
        raise KeyboardInterrupt
    return Path(config.run)
