"""The Python API: `nmt.load`, `nmt.prepare` and `nmt.train`.

They accept command-line arguments, `"model=small"`, or keyword arguments, `model="small"` and `optim={"factor": 2}`.
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
    """Return the override that sets a key to a Python value, without interpolating ${} in strings."""
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
        """Return the best translation of each line, in order."""
        require(not isinstance(lines, str), "model.translate takes a list of strings, such as ['The house is old.']")
        return [row[0].text for row in self.translator.translate([*lines])]

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """Return the natural logarithm of P(target | source) for each pair, including the end symbol."""
        from nmt.translation import score_pairs

        return [score.log_probability for score in score_pairs(self.translator, [*pairs])]


def load(*words: str | Path, **keys: Any) -> Model:
    """Load a run or a model directory, `runs/latest` by default; accepts the keys of `nmt translate`."""
    from nmt.translation import find_models, load_translator

    config = configuration("translate", words, keys)
    has_lines = (config.input, config.output, config.text) != ("-", "-", None)
    require(not has_lines, "nmt.load takes a run or a model directory, but no text, input or output")
    options, engine = config.translator, config.translator.compute.engine
    require(engine in ("auto", "torch"), f"engine={engine}: nmt.load supports only torch")
    find_models(options.run)  # fail before torch loads, which takes seconds
    options = replace(options, compute=replace(options.compute, engine="torch"))
    return Model(load_translator(options, lambda notice: print(f"nmt: {notice}", file=sys.stderr)))


def prepare(*words: str | Path, **keys: Any) -> Path:
    """Prepare a corpus, like `nmt preprocess`, unless it is already prepared, and return its folder."""
    config = configuration("preprocess", words, keys)
    COMMANDS["preprocess"].run(config)
    return Path(config.prepared)


def train(*words: str | Path, **keys: Any) -> Path:
    """Train a model or resume a run, like `nmt train`, and return the run folder.

    On SIGINT or SIGTERM, training saves a checkpoint and raises KeyboardInterrupt; the same call resumes the run.
    """
    config = configuration("train", words, keys)
    if COMMANDS["train"].run(config):
        raise KeyboardInterrupt
    return Path(config.run)
