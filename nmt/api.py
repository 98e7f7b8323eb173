"""The Python API: everything that `import nmt` offers. Mistakes raise `nmt.NMTError`."""

import logging
import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from nmt import commands, files, translation
from nmt.config import (
    DecodeConfig,
    TranslateConfig,
    TranslatorOptions,
    answer,
    build,
    flatten,
    in_words,
    keys_of,
    literal,
    require,
    set_text,
    to_tree,
)
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.evaluation import Score
    from nmt.translation import Translation, Translator


@contextmanager
def python_names() -> Iterator[None]:
    """In an NMTError, write `nmt train CORPUS` as nmt.train('CORPUS'), and decode.beam_size as beam_size."""
    try:
        yield
    except NMTError as error:
        text = re.sub(r"(?<![\w./-])decode\.", "", str(error)).replace(
            "`nmt preprocess", "`nmt prepare"
        )
        call = r"`nmt (train|prepare)\b([^`]*)`"
        error.args = (re.sub(call, lambda m: f"nmt.{m[1]}({str(m[2].split())[1:-1]})", text),)
        raise


def configuration(command: str, words: tuple[str | Path, ...], keys: dict[str, Any]) -> Any:
    """Compose a command's options from words and Python values, without interpolating ${} in strings."""
    overrides = [*map(str, words)]
    for key, value in flatten(keys).items():
        texts = [*map(str, value)] if isinstance(value, list | tuple) else str(value)
        is_text = isinstance(value, str | Path | list | tuple)
        overrides.append(set_text(key, literal(texts)) if is_text else f"{key}={in_words(value)}")
    return commands.compose(command, overrides)


def check_foreign_names(values: dict[str, Any], names: Iterable[str]) -> None:
    """Raise NMTError for a name of another toolkit, such as num_beams, with our name and the caller's value."""
    for name in values.keys() - {*names}:
        if advice := answer("translate", [f"{name}={in_words(values[name])}"]):
            raise NMTError(advice)


def checked(lines: Iterable[str], name: str = "lines") -> Iterator[str]:
    """Yield the lines, or a single string as one line; NMTError for anything else."""
    require(
        not (isinstance(lines, str) and "\n" in lines.strip()),
        f"{name}: one string is one line; use splitlines()",
    )
    require(
        isinstance(lines, Iterable),
        f"{name}={lines!r:.60}: must be a string or an iterable of strings",
    )
    for index, line in enumerate([lines] if isinstance(lines, str) else lines):
        require(isinstance(line, str), f"{name}[{index}]={line!r:.60}: must be a string")
        yield line


class Stream(closing[Generator[str]], Iterator[str]):
    """Translations in order; leaving its `with` block, or dropping it, stops the thread that reads the lines."""

    thing: Generator[str]

    def __next__(self) -> str:
        return next(self.thing)


class Model:
    """A trained model or an ensemble, run by `engine`. Threads can share it; processes that fork later cannot."""

    def __init__(self, translator: "Translator") -> None:
        assert translator.models
        self.translator, self.models, self.process = translator, translator.models, os.getpid()
        self.engine = translator.options.compute.engine
        self.latest = (
            "",
            translator,
        )  # the translator with the last call's search settings, and these settings

    def __repr__(self) -> str:
        options = self.translator.options
        return f"<nmt.Model {','.join(options.run)}, engine={self.engine}, precision={options.compute.precision}>"

    @overload
    def translate(self, lines: str, **search: Any) -> str: ...
    @overload
    def translate(self, lines: Iterable[str], **search: Any) -> list[str]: ...
    def translate(self, lines: Iterable[str], **search: Any) -> str | list[str]:
        """Return the best translation of each line, in order, as strings; for a single string, return a string.

        `search` overrides settings for this call: search settings such as `beam_size=1`, whose names are the keys
        `decode.*`, and `glossary` and `protect`.
        """
        rows = self.searching(search).translate([*checked(lines)])
        return rows[0][0].text if isinstance(lines, str) else [row[0].text for row in rows]

    @overload
    def explain(self, lines: str, **search: Any) -> "list[Translation]": ...
    @overload
    def explain(self, lines: Iterable[str], **search: Any) -> "list[list[Translation]]": ...
    def explain(
        self, lines: Iterable[str], **search: Any
    ) -> "list[Translation] | list[list[Translation]]":
        """Return the `n_best` translations of each line, best first, with scores and flags; of one string, its list."""
        texts, flags_of = [*checked(lines)], translation.flagger(self.models)
        rows = self.searching(search, details=True).translate(texts)
        for line, row in zip(texts, rows, strict=True):
            for result in row:
                result.flags += flags_of(line, result)
        return rows[0] if isinstance(lines, str) else rows

    def stream(self, lines: Iterable[str], buffer: int = 2000, **search: Any) -> Stream:
        """Translate the lines of any iterable as they arrive; a thread reads at most about 2 * `buffer` lines ahead."""
        require(buffer > 0, f"buffer={buffer}: must be at least 1")
        return Stream(row[0].text for row in self.searching(search).stream(checked(lines), buffer))

    @python_names()
    def translate_file(self, input: str | Path, output: str | Path, **options: Any) -> Path:
        """Translate a text file or a document, like `nmt translate`, and return the output's path.

        `options`: `format`, `overwrite` and `buffer` of `nmt translate`, and the settings that `translate` takes. The
        file is translated with weights that are loaded anew, so the call suits whole files.
        """
        of_job: dict[str, Any] = {}
        for name in ("format", "overwrite", "buffer"):
            if name in options:
                of_job[name] = options.pop(name)
        require(Path(input).exists(), f"input={input}: no such file")
        words = {"input": str(input), "output": str(output), **of_job}
        config = replace(build(TranslateConfig, words), translator=self.options_with(options))
        commands.COMMANDS["translate"].run(config)
        return Path(output)

    def options_with(self, settings: dict[str, Any]) -> TranslatorOptions:
        """The translator's options with other search settings and other options of stages, such as a glossary."""
        base = self.translator.options
        of_stages = dict[str, Any]()
        for record in base.plugins.values():
            of_stages |= to_tree(record)
        settings = {
            key: str(value) if isinstance(value, Path) else value for key, value in settings.items()
        }
        search = {key: value for key, value in settings.items() if key not in of_stages}
        check_foreign_names(search, vars(base.decode))
        decode = build(DecodeConfig, search, base=base.decode)
        given = {key: value for key, value in settings.items() if key in of_stages}
        options = build(TranslatorOptions, of_stages | given, base=replace(base, decode=decode))
        for key, value in given.items():
            is_file = keys_of(TranslatorOptions)[key].metadata.get("is_file") and value is not None
            require(not is_file or Path(value).is_file(), f"{key}={value}: no such file")
        return options

    def score(self, pairs: Iterable[tuple[str, str]], *more: object) -> list[float]:
        """Return the natural logarithm of P(target | source) for each pair, including the end symbol."""
        rows: list[Any] = [*pairs] if isinstance(pairs, Iterable) and not more else [()]
        fits = all(
            isinstance(row, list | tuple) and [*map(type, row)] == [str, str] for row in rows
        )
        require(
            fits,
            "pairs: must be (source, target) pairs of strings, as in model.score(zip(sources, targets))",
        )
        return [
            score.log_probability for score in translation.score_pairs(self.searching({}), rows)
        ]

    @python_names()
    def searching(self, search: dict[str, Any], details: bool = False) -> "Translator":
        """The translator with other search settings."""
        require(
            self.process == os.getpid(),
            "nmt.Model: cannot be used after a fork; load it in each process",
        )
        require(
            details or "n_best" not in search,
            "n_best: only model.explain returns several translations",
        )
        settings, translator = self.latest
        if settings != (settings := f"{search} {details}"):
            options = self.options_with(search)
            decode = files.expected_search(options.decode, self.models.descriptions[0])
            stages = self.translator.stages
            if options.plugins != self.translator.options.plugins:
                stages = translation.stages_of(options, self.models)
            engine = self.translator.engine.with_search(decode)
            translator = replace(self.translator, engine=engine, details=details, stages=stages)
            self.latest = settings, translator
        return translator


@python_names()
def load(run: str | Path | Sequence[str | Path] = "runs/latest", **options: Any) -> Model:
    """Load a run or a model directory; a list of them is an ensemble.

    `options`: the keys of `nmt translate`, such as `engine`, `precision`, `device`, `threads`, `target` and `glossary`,
    and default search settings, such as `beam_size`.
    """
    require(
        isinstance(run, str | Path | Sequence),
        f"run={run!r:.60}: must be a run folder or a list of them",
    )
    options = {
        key: str(value) if isinstance(value, Path) else value for key, value in options.items()
    }
    decode = options.pop("decode", {})
    require(
        isinstance(decode, dict),
        f"decode={decode!r:.60}: pass search settings by name, such as beam_size=1",
    )
    decode = decode | {key: options.pop(key) for key in vars(DecodeConfig()) if key in options}
    check_foreign_names(options, keys_of(TranslatorOptions))
    runs, log = [run] if isinstance(run, str | Path) else run, logging.getLogger("nmt")
    config = build(TranslatorOptions, {**options, "run": [*map(str, runs)], "decode": decode})
    require(
        config.compute.devices == 1,
        "devices: a model runs on one device; load one for each device='cuda:NUMBER'",
    )
    return Model(
        translation.load_translator(translation.with_engine(config, log.info), log.warning)
    )


@python_names()
def prepare(*words: str | Path, **keys: Any) -> Path:
    """Prepare a corpus, like `nmt preprocess`, unless it is already prepared, and return its folder."""
    config = configuration("preprocess", words, keys)
    commands.COMMANDS["preprocess"].run(config)
    return Path(config.prepared)


@python_names()
def train(*words: str | Path, **keys: Any) -> Path:
    """Train a model or resume a run, like `nmt train`, and return the run folder.

    On SIGINT or SIGTERM, training saves a checkpoint and raises KeyboardInterrupt; the same call resumes the run.
    """
    config = configuration("train", words, keys)
    if commands.COMMANDS["train"].run(config):
        raise KeyboardInterrupt
    return Path(config.run)


def score(hypotheses: Iterable[str], references: Iterable[str], **options: Any) -> "list[Score]":
    """Score translations, with signatures; `options` are `metrics`, `language`, `lowercase` and `tokenize`."""
    from nmt import evaluation
    from nmt.commands.score import ScoreConfig

    config = build(ScoreConfig, options, offered=("metrics", "language", "lowercase", "tokenize"))
    texts = [*checked(hypotheses, "hypotheses")], [*checked(references, "references")]
    return evaluation.score(
        *texts, config.metrics, config.language, config.lowercase, config.tokenize
    )
