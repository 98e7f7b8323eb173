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
    DocumentOptions,
    FolderOptions,
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
from nmt.errors import NMTError, SettingError

# Only for annotations: `import nmt` must load nothing heavy.
if TYPE_CHECKING:
    from nmt.evaluation import Score
    from nmt.translation import FolderReport, Translation, Translator


FUNCTIONS = {"train": "nmt.train", "preprocess": "nmt.prepare"}
"""Command -> the function that runs it."""
COMMAND_LINE = re.compile(r"`nmt (train|preprocess)\b([^`]*)`")
"""A command line in a message: `nmt train runs/new` in backticks, with its words."""
LANGUAGES = ("source", "target")
"""Settings of a call that are languages."""
OF_JOB = ("format", "overwrite", "buffer")
"""Arguments that are keys of `nmt translate`, but not of a translator."""
SEARCH_GROUP = re.compile(r"(?<![\w./-])decode\.")
"""The group of a search setting in a message: decode. in decode.beam_size.

Not part of a path or of a longer key, such as translator.decode.beam_size.
"""


@contextmanager
def python_names() -> Iterator[None]:
    """In an NMTError, write keys and commands as callers in Python write them."""
    try:
        yield
    except NMTError as error:
        # The error object stays the same, and with it the traceback and the cause.
        error.args = (message_in_python(error),)
        raise


def message_in_python(error: NMTError) -> str:
    """An error's message with keys and commands as callers in Python write them.

    Search settings are arguments of functions here, so decode.beam_size becomes beam_size.
    `nmt train CORPUS` becomes nmt.train('CORPUS').
    """
    message = str(error)
    if isinstance(error, SettingError):
        message = error.line(error.key.removeprefix("decode."))
    # An error has only its own key as an attribute. Other keys and commands are part of the
    # sentences of its problem and advice, so they can only be found in the text.
    message = SEARCH_GROUP.sub("", message)
    return COMMAND_LINE.sub(call_of_command, message)


def call_of_command(command_line: re.Match[str]) -> str:
    """A match of COMMAND_LINE as a call: nmt.train('runs/new') for `nmt train runs/new`."""
    command, words = command_line.groups()
    arguments = ", ".join(map(repr, words.split()))
    return f"{FUNCTIONS[command]}({arguments})"


def configuration(command: str, words: tuple[str | Path, ...], keys: dict[str, Any]) -> Any:
    """Compose a command's options from words and Python values; ${} in strings stays."""
    overrides = [*map(str, words)]
    # Hydra parses overrides, so each value takes a form that Hydra reads back as the same value.
    for key, value in flatten(keys).items():
        if isinstance(value, list | tuple):
            texts = [str(item) for item in value]
            overrides.append(set_text(key, literal(texts)))
        elif isinstance(value, str | Path):
            overrides.append(set_text(key, literal(str(value))))
        else:
            overrides.append(f"{key}={in_words(value)}")
    return commands.compose(command, overrides)


def check_foreign_names(values: dict[str, Any], names: Iterable[str]) -> None:
    """Raise NMTError for a name of another toolkit, such as num_beams.

    It contains our name and the caller's value.
    """
    for name in values.keys() - {*names}:
        # Otherwise `build` would suggest the nearest of our names, which often is another setting.
        advice = answer("translate", [f"{name}={in_words(values[name])}"])
        if advice:
            raise NMTError(advice)


def checked(lines: Iterable[str], name: str = "lines") -> Iterator[str]:
    """Yield the lines, or a single string as one line; NMTError for anything else."""
    # A string is also an iterable: nmt would translate its characters one by one.
    if isinstance(lines, str):
        if "\n" in lines.strip():
            raise NMTError(f"{name}: one string is one line; use splitlines()")
        lines = [lines]
    if not isinstance(lines, Iterable):
        raise NMTError(f"{name}={lines!r:.60}: must be a string or an iterable of strings")
    # One by one, because a stream may be endless.
    for index, line in enumerate(lines):
        if not isinstance(line, str):
            raise NMTError(f"{name}[{index}]={line!r:.60}: must be a string")
        yield line


def with_paths_as_strings(options: dict[str, Any]) -> dict[str, Any]:
    """Options that a caller may give as Path, although their keys have the type str."""
    converted: dict[str, Any] = {}
    for key, value in options.items():
        converted[key] = str(value) if isinstance(value, Path) else value
    return converted


class Stream(closing[Generator[str]], Iterator[str]):
    """Translations in order.

    Leaving its `with` block, or dropping it, stops the thread that reads the lines.
    """

    thing: Generator[str]

    def __next__(self) -> str:
        return next(self.thing)


class Model:
    """A trained model or an ensemble, run by `engine`.

    Threads can share it; processes that fork later cannot.
    """

    def __init__(self, translator: "Translator") -> None:
        assert translator.models
        self.translator = translator
        self.models = translator.models
        # The threads of a library do not survive a fork, so a call in the new process could wait
        # forever.
        self.process = os.getpid()
        self.engine = translator.options.compute.engine
        self.sources = self.models.source_languages()
        """The codes of the languages that the model translates from."""
        self.targets = self.models.target_languages()
        """The codes of the languages that the model translates into."""
        # The last call's search settings, and its translator. One attribute, because threads read
        # and replace both at once.
        self.latest = ("", translator)

    def __repr__(self) -> str:
        options = self.translator.options
        runs = ",".join(options.run)
        precision = options.compute.precision
        return f"<nmt.Model {runs}, engine={self.engine}, precision={precision}>"

    @overload
    def translate(self, lines: str, **search: Any) -> str: ...
    @overload
    def translate(self, lines: Iterable[str], **search: Any) -> list[str]: ...
    def translate(self, lines: Iterable[str], **search: Any) -> str | list[str]:
        """Return the best translation of each line, in order; of one string, a string.

        `search` overrides settings for this call: search settings such as `beam_size=1`, whose
        names are the keys `decode.*`, `glossary`, `protect`, `minimum` and `below`, and the
        languages of a multilingual model, `source` and `target`.
        """
        rows = self.searching(search).translate([*checked(lines)])
        texts = [row[0].marked_text for row in rows]
        return texts[0] if isinstance(lines, str) else texts

    @overload
    def explain(self, lines: str, **search: Any) -> "list[Translation]": ...
    @overload
    def explain(self, lines: Iterable[str], **search: Any) -> "list[list[Translation]]": ...
    def explain(
        self, lines: Iterable[str], **search: Any
    ) -> "list[Translation] | list[list[Translation]]":
        """Return the `n_best` translations of each line; of one string, its list.

        They have scores and flags, and the best one comes first. If `nmt calibrate` has calibrated
        the model, they also have the `probability` that they are good.
        """
        # A list, because the flags need the lines again after the search.
        texts = [*checked(lines)]
        translator = self.searching(search, details=True)
        flags_of = translation.flagger(self.models, translator.direction)
        rows = translator.translate(texts)
        for line, row in zip(texts, rows, strict=True):
            for result in row:
                result.flags += flags_of(line, result)
        return rows[0] if isinstance(lines, str) else rows

    def stream(self, lines: Iterable[str], buffer: int = 2000, **search: Any) -> Stream:
        """Translate the lines of any iterable as they arrive.

        A thread reads at most about 2 * `buffer` lines ahead.
        """
        require(buffer > 0, f"buffer={buffer}: must be at least 1")
        rows = self.searching(search).stream(checked(lines), buffer)
        return Stream(row[0].marked_text for row in rows)

    @python_names()
    def translate_file(self, input: str | Path, output: str | Path, **options: Any) -> Path:
        """Translate a text file or a document, like `nmt translate`, and return the output's path.

        `options`: `format`, `overwrite` and `buffer` of `nmt translate`, the options of formats,
        and the settings that `translate` takes. Each call loads the weights again, so use it for
        whole files.
        """
        require(not Path(input).is_dir(), f"input={input}: a folder; use translate_folder")
        config = self.job_of(input, output, options)
        commands.COMMANDS["translate"].run(config)
        return Path(output)

    @python_names()
    def translate_folder(
        self, input: str | Path, output: str | Path, **options: Any
    ) -> "FolderReport":
        """Translate the files of a folder that have changed, like `nmt translate FOLDER`.

        `options`: `include`, `exclude`, `names` and `copy` of `nmt translate`, and those of
        `translate_file`. Returns what became of each file. A file that fails does not stop the
        others.
        """
        require(Path(input).is_dir(), f"input={input}: no such folder")
        return translation.translate_folder(self.job_of(input, output, options))

    def job_of(
        self, input: str | Path, output: str | Path, options: dict[str, Any]
    ) -> TranslateConfig:
        """The job of `nmt translate` for these files, from the options of a call."""
        # The options of folders are a group of keys, but arguments of a call have no group.
        of_folder = {name: options[name] for name in options if name in keys_of(FolderOptions)}
        of_job: dict[str, Any] = {"folder": of_folder}
        settings: dict[str, Any] = {}
        for name, value in options.items():
            if name in (*OF_JOB, *keys_of(DocumentOptions)):
                of_job[name] = value
            elif name not in of_folder:
                settings[name] = value
        # The command would name only the file, not the argument.
        require(Path(input).exists(), f"input={input}: no such file")
        words = {"input": str(input), "output": str(output), **of_job}
        return replace(build(TranslateConfig, words), translator=self.options_with(settings))

    def options_with(self, settings: dict[str, Any]) -> TranslatorOptions:
        """The translator's options with other search settings, languages and options of stages.

        `settings` has all by name, such as beam_size, target and glossary. NMTError for an unknown
        name.
        """
        base = self.translator.options
        # Stages are plugins, so their options are found and not listed.
        current = dict[str, Any]()
        for record in base.plugins.values():
            current |= to_tree(record)
        search: dict[str, Any] = {}
        languages: dict[str, Any] = {}
        for_stages: dict[str, Any] = {}
        for key, value in with_paths_as_strings(settings).items():
            if key in LANGUAGES:
                languages[key] = value
            elif key in current:
                for_stages[key] = value
            else:
                search[key] = value
        check_foreign_names(search, vars(base.decode))
        # The base has the settings of `load`, which calls without them keep.
        decode = build(DecodeConfig, search, base=base.decode)
        tree = {**current, **for_stages, **languages}
        options = build(TranslatorOptions, tree, base=replace(base, decode=decode))
        for key, value in for_stages.items():
            is_file = keys_of(TranslatorOptions)[key].metadata.get("is_file")
            if is_file and value is not None and not Path(value).is_file():
                raise NMTError(f"{key}={value}: no such file")
        return options

    def score(
        self, pairs: Iterable[tuple[str, str]], *more: object, **languages: Any
    ) -> list[float]:
        """Return ln P(target | source) for each pair, including the end symbol.

        `languages`: the `source` and `target` of a multilingual model.
        """
        # A common mistake is score(sources, targets), as in other toolkits.
        rows: list[Any] = []
        if isinstance(pairs, Iterable):
            rows = [*pairs]
        if more or not isinstance(pairs, Iterable) or not all(map(is_pair, rows)):
            raise NMTError(
                "pairs: must be (source, target) pairs of strings, "
                "as in model.score(zip(sources, targets))"
            )
        # Not other settings: they would have no effect on given translations.
        for name in languages:
            require(name in LANGUAGES, f"{name}: score takes only source and target")
        scores = translation.score_pairs(self.searching(languages), rows)
        return [score.log_probability for score in scores]

    @python_names()
    def searching(self, search: dict[str, Any], details: bool = False) -> "Translator":
        """The translator with other search settings."""
        if self.process != os.getpid():
            raise NMTError("nmt.Model: cannot be used after a fork; load it in each process")
        if "n_best" in search and not details:
            raise NMTError("n_best: only model.explain returns several translations")
        settings = f"{search} {details}"  # values need not be hashable
        latest_settings, translator = self.latest
        if settings != latest_settings:
            translator = self.translator_with(search, details)
            self.latest = (settings, translator)
        return translator

    def translator_with(self, search: dict[str, Any], details: bool) -> "Translator":
        options = replace(self.options_with(search), judged=details)
        decode = files.expected_search(options.decode, self.models.descriptions[0])
        translator = self.translator
        # Stages may have read large files, such as a glossary, so they are rebuilt only if they
        # change.
        if replace(options, decode=translator.options.decode) != translator.options:
            translator = translation.in_languages(translator, options)
        # The weights are shared: only the settings differ.
        engine = translator.engine.with_search(decode)
        return replace(translator, engine=engine, details=details)


def is_pair(pair: Any) -> bool:
    """Whether a value is a source and its target."""
    return isinstance(pair, list | tuple) and [type(text) for text in pair] == [str, str]


@python_names()
def load(run: str | Path | Sequence[str | Path] = "runs/latest", **options: Any) -> Model:
    """Load a run, a model directory or a published model; a list of them is an ensemble.

    A plugin finds published models by their prefix, such as hub:ORG/NAME.
    `options`: the keys of `nmt translate`, such as `engine`, `precision`, `device`, `threads`,
    `source`, `target` and `glossary`, and default search settings, such as `beam_size`.
    """
    if not isinstance(run, str | Path | Sequence):
        raise NMTError(f"run={run!r:.60}: must be a run folder or a list of them")
    runs = [run] if isinstance(run, str | Path) else run
    settings = with_paths_as_strings(options)
    decode = settings.pop("decode", {})
    if not isinstance(decode, dict):
        raise NMTError(f"decode={decode!r:.60}: pass search settings by name, such as beam_size=1")
    # Search settings may be given by name or, as in a configuration, in `decode`.
    for key in vars(DecodeConfig()):
        if key in settings:
            decode = {**decode, key: settings.pop(key)}
    check_foreign_names(settings, keys_of(TranslatorOptions))
    tree = {**settings, "run": list(map(str, runs)), "decode": decode}
    config = build(TranslatorOptions, tree)
    # Several devices mean several processes, which a model in this process cannot offer.
    if config.compute.devices != 1:
        raise NMTError(
            "devices: a model runs on one device; load one for each device='cuda:NUMBER'"
        )
    log = logging.getLogger("nmt")
    config = translation.with_engine(config, log.info)
    return Model(translation.load_translator(config, log.warning))


@python_names()
def prepare(*words: str | Path, **keys: Any) -> Path:
    """Prepare a corpus, like `nmt preprocess`, and return its folder.

    A corpus that is already prepared stays as it is.
    """
    config = configuration("preprocess", words, keys)
    commands.COMMANDS["preprocess"].run(config)
    return Path(config.prepared)


@python_names()
def train(*words: str | Path, **keys: Any) -> Path:
    """Train a model or resume a run, like `nmt train`, and return the run folder.

    On SIGINT or SIGTERM, training saves a checkpoint and raises KeyboardInterrupt; the same call
    resumes the run.
    """
    config = configuration("train", words, keys)
    # An interrupted training returns an exit code; callers in Python expect the exception.
    if commands.COMMANDS["train"].run(config):
        raise KeyboardInterrupt
    return Path(config.run)


def score(
    hypotheses: Iterable[str],
    references: Iterable[str],
    sources: Iterable[str] | None = None,
    **options: Any,
) -> "list[Score]":
    """Score translations, with signatures.

    `options` are `metrics`, `language`, `lowercase`, `tokenize`, and the options of metrics, such
    as `comet={"gpus": 0}`. `sources` are the source lines, which some metrics need.
    """
    # Imported here, because `import nmt` must load nothing heavy.
    from nmt import evaluation
    from nmt.commands.score import ScoreConfig

    # The other options of `nmt score` are about files and output.
    offered = ("metrics", "language", "lowercase", "tokenize", "metric_options")
    config = build(ScoreConfig, options, offered=offered)
    return evaluation.score(
        [*checked(hypotheses, "hypotheses")],
        [*checked(references, "references")],
        config.metrics,
        config.language,
        config.lowercase,
        config.tokenize,
        sources=None if sources is None else [*checked(sources, "sources")],
        options=config.metric_options.plugins,
    )
