"""The Python API: `nmt.load`, `nmt.prepare` and `nmt.train`.

They take the words of a command line, `"model=small"`, or keys, `model="small"` and `optim={"factor": 2}`.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.commands import COMMANDS, compose
from nmt.config import Command, flatten, in_words, keys_of, literal, require, set_text

if TYPE_CHECKING:
    from nmt.translation import Translator


def configuration(command: str, words: tuple[str | Path, ...], keys: dict[str, Any]) -> Any:
    overrides = [override(COMMANDS[command], *item) for item in flatten(keys).items()]
    return compose(command, [*map(str, words), *overrides])


def override(command: Command, key: str, value: Any) -> str:
    """The override that sets a key to a Python value, without interpolation of ${} in texts."""
    member = keys_of(command.config).get(key)
    texts = [*map(str, value)] if isinstance(value, list | tuple) else str(value)
    if member and "literal" in member.metadata and value is not None:
        return set_text(key, texts)
    is_text = isinstance(value, str | Path | list | tuple)
    return set_text(key, literal(texts)) if is_text else f"{key}={in_words(value)}"


@dataclass
class Model:
    """A trained model, or an ensemble of several."""

    translator: "Translator"

    def translate(self, lines: Iterable[str]) -> list[str]:
        """The best translation of each line, in their order."""
        require(not isinstance(lines, str), "model.translate takes a list of texts, such as ['The house is old.']")
        return [row[0].text for row in self.translator.translate([*lines])]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """log P of each target, given its source: the natural logarithm, end symbol included."""
        from nmt.translation import score_pairs

        return [score.log_probability for score in score_pairs(self.translator, [*pairs])]


def load(*words: str | Path, **keys: Any) -> Model:
    """Load the model of a run or a model directory, by default `runs/latest`; the keys are those of `nmt translate`."""
    from nmt.translation import find_models, load_translator

    config = configuration("translate", words, keys)
    has_lines = (config.input, config.output, config.text) != ("-", "-", None)
    require(not has_lines, "nmt.load takes a run or a model directory, and no text, input or output")
    options, engine = config.translator, config.translator.compute.engine
    require(engine in ("auto", "torch"), f"engine={engine}: nmt.load loads a model with torch")
    find_models(options.run)  # before the seconds that torch takes to load
    options = replace(options, compute=replace(options.compute, engine="torch"))
    return Model(load_translator(options, lambda notice: print(f"nmt: {notice}", file=sys.stderr)))


def prepare(*words: str | Path, **keys: Any) -> Path:
    """Prepare a corpus as `nmt preprocess` does, and return its folder; does nothing if it is prepared already."""
    config = configuration("preprocess", words, keys)
    COMMANDS["preprocess"].run(config)
    return Path(config.prepared)


def train(*words: str | Path, **keys: Any) -> Path:
    """Train a model or resume a run as `nmt train` does, and return the folder of the run.

    A signal raises KeyboardInterrupt after training is saved; the same call resumes it.
    """
    config = configuration("train", words, keys)
    if COMMANDS["train"].run(config):
        raise KeyboardInterrupt
    return Path(config.run)
