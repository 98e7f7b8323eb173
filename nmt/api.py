"""The commands for Python: `nmt.load`, `nmt.prepare` and `nmt.train`.

They take what a command line takes, as words, `"model=small"`, or as keys, `model="small"` and `optim={"factor": 2}`;
or the command's dataclass. See docs/python.md.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def configuration(command: Command, given: tuple[Any, ...], keys: dict[str, Any]) -> Any:
    """Compose the configuration of a command from words and keys, or return the one that is given."""
    if len(given) == 1 and isinstance(given[0], command.config):
        if keys:
            raise NMTError(f"{', '.join(keys)}: a {command.config.__name__} has its values already; change them there")
        return given[0]
    return compose(command, [*map(str, given), *(override(*item) for item in flatten(keys).items())])


def override(key: str, value: Any) -> str:
    """The override that sets a key to a Python value; ${} in a text is not an interpolation."""
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
    """Load the model of a run or a model directory, by default `runs/latest`; the keys are those of `nmt translate`."""
    from nmt.search.torch_engine import TorchEngine
    from nmt.translation.load import find_models, load_translator

    config = configuration(translate_command.COMMAND, words, keys)
    find_models(config.run)  # before the seconds that torch takes to load
    translator = load_translator(config, lambda notice: print(f"nmt: {notice}", file=sys.stderr))
    if not isinstance(translator.engine, TorchEngine):
        raise NMTError(f"engine={config.engine}: from Python, torch translates; leave engine out")
    return Model(translator)


def prepare(*words: str | Path | ExperimentConfig, **keys: Any) -> Path:
    """Prepare a corpus as `nmt preprocess` does, unless that is done already; returns its folder."""
    config = configuration(preprocess_command.COMMAND, words, keys)
    preprocess_command.run(config)
    return Path(config.prepared)


def train(*words: str | Path | ExperimentConfig, **keys: Any) -> Path:
    """Train a model, or continue where training stopped, as `nmt train` does; returns the folder of the run.

    Raises KeyboardInterrupt if a signal stopped it: it has saved, and the same call continues from there.
    """
    config = configuration(train_command.COMMAND, words, keys)
    if train_command.run(config):
        raise KeyboardInterrupt
    return Path(config.run)
