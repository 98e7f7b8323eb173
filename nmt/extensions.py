"""The extension points: what a plugin can add to nmt, one class of entries for each.

A plugin has a function `register`, which calls `add` once for each object that the plugin adds:

    from nmt.extensions import Add, MetricEntry

    def register(add: Add) -> None:
        add(MetricEntry("loudness", "shout:loudness", scores_text=True))

An entry has a name and the import path of the object. nmt imports the object when it first uses it.
The entry's other fields say what nmt must know before that. The base class of an entry,
`Entry[TYPE]`, names the type of the object. If the object is a function, TYPE is a protocol.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

if TYPE_CHECKING:
    # ruff does not see the names in the bases of classes, such as Entry["Command"].
    from pathlib import Path

    from torch.optim import Optimizer

    from nmt.config import (
        Command,  # noqa: F401
        DataConfig,
        Program,
        SourceConfig,
        TranslatorOptions,
    )
    from nmt.data import Transform
    from nmt.evaluation import LineScores, Score, Scoring
    from nmt.files import NamedModel
    from nmt.model import Transformer
    from nmt.preparation import Corpus  # noqa: F401
    from nmt.search import Engine, EngineOptions
    from nmt.text import Pair, Tokenizer
    from nmt.translation import (
        Document,  # noqa: F401
        Limits,
        Stage,
        Translator,
        Work,
    )

T = TypeVar("T")


def import_attribute(path: str) -> Any:
    """Import `package.module:attribute`."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Entry(Generic[T]):
    """An object that the core or a plugin adds."""

    kind: ClassVar[str]
    """The name of the extension point, which `nmt plugins` prints."""

    name: str
    path: str
    """`package.module:attribute`"""
    plugin: str = field(default="", kw_only=True)
    """The plugin that added the entry; the registry fills it in."""

    def load(self) -> T:
        return cast(T, import_attribute(self.path))


Add = Callable[[Entry[Any]], None]


@dataclass(frozen=True)
class CommandEntry(Entry["Command"]):
    """A command, `nmt NAME`.

    ```python
    add(CommandEntry("shout", "shout:COMMAND", summary="Print text in capitals."))
    ```
    """

    kind = "command"
    summary: str = field(kw_only=True)


@dataclass(frozen=True)
class OptionsEntry(Entry[type]):
    """Options for a record of the core: a dataclass whose fields become configuration keys.

    The name is OWNER.NAME, where OWNER is `cluster`, `data`, `document`, `export`, `metrics`,
    `optim`, `score`, `train` or `translator`. Read the values from `owner.plugins["NAME"]`, where
    `owner` is the record. If the dataclass has a method `check(owner)`, nmt calls it to refuse keys
    that exclude each other.

    ```python
    add(OptionsEntry("data.noise", "noisy:NoiseConfig"))
    ```
    """

    kind = "options"
    is_inline: bool = field(default=False, kw_only=True)
    """Whether the keys are written without NAME."""


class LoadEngine(Protocol):
    def __call__(
        self, folders: "Sequence[Path]", options: "EngineOptions", notice: Callable[[str], None]
    ) -> "Engine":
        """Load the models of an ensemble; raise NMTError if an option is not supported."""


@dataclass(frozen=True)
class EngineEntry(Entry[LoadEngine]):
    """A program that searches for translations, `engine=NAME`.

    `engine=auto` chooses the first engine whose library is installed and whose `why_not` returns an
    empty string. If there is none, it chooses torch.

    ```python
    add(EngineEntry("quick", "quick:load", precisions=("float32",)))
    ```
    """

    kind = "engine"
    precisions: tuple[str, ...] = field(kw_only=True)
    """The values of `precision` that the engine supports."""
    module: str = field(default="", kw_only=True)
    """The Python module of the library that the engine needs; empty: none."""
    why_not: str | None = field(default=None, kw_only=True)
    """Path of a function that takes model folders and EngineOptions and returns why `engine=auto`
    should not choose this engine, or an empty string; None: never choose it."""
    weights: str | None = field(default=None, kw_only=True)
    """Path of a function that takes a model folder and a precision and returns the file with the
    weights that the engine uses; None: the model directory's weights."""


@dataclass(frozen=True)
class DocumentEntry(Entry["type[Document]"]):
    """A format of documents, `format=NAME`.

    ```python
    add(DocumentEntry("shout", "shout:Shouts", suffixes=(".shout",)))
    ```
    """

    kind = "document"
    suffixes: tuple[str, ...] = field(kw_only=True)
    shared_suffixes: tuple[str, ...] = field(default=(), kw_only=True)
    """Suffixes that other kinds of files have, too, such as .xml. The content decides, see
    nmt/translation/contents.py."""
    is_by_line: bool = field(default=False, kw_only=True)
    """Whether `nmt translate` translates such files line by line, as they arrive."""
    options: str = field(default="", kw_only=True)
    """The NAME of an OptionsEntry("document.NAME", ...). The reader gets the options as its keyword
    `options`; without them, it uses the defaults."""


class TranslateLines(Protocol):
    def __call__(self, translator: "Translator", lines: list[str]) -> list[str]:
        """Translate lines into structures, written as text."""


@dataclass(frozen=True)
class StructuredTargets:
    """How nmt treats a corpus whose targets are not text, such as trees."""

    command: str
    """The command that users run instead of `nmt translate`."""
    translate: str
    """Path of a TranslateLines."""
    metric: str
    """The name of the MetricEntry that scores the structures."""
    column: str
    """The metric's column in metrics.csv."""


@dataclass(frozen=True)
class CorpusEntry(Entry["type[Corpus]"]):
    """A source of sentence pairs, `data.kind=NAME`.

    ```python
    add(CorpusEntry("hub", "hub:Hub", group="wmt14_en_de"))
    ```
    """

    kind = "corpus"
    group: str | None = field(default=None, kw_only=True)
    """The group `data=GROUP` that `nmt preprocess` uses if no corpus is named; None: none."""
    structured: StructuredTargets | None = field(default=None, kw_only=True)
    dataset: str | None = field(default=None, kw_only=True)
    """The key of `data` whose value is the name of a dataset on the Hugging Face Hub; None: none.
    Model cards list the dataset unless `data.path` names a copy."""


class ReadPairs(Protocol):
    def __call__(
        self, path: "Path", config: "DataConfig", skipped: Counter[str]
    ) -> "Iterator[Pair]":
        """Yield a file's pairs. With data.errors=skip, count what was skipped by reason."""


class ReadDatedPairs(Protocol):
    def __call__(
        self, path: "Path", config: "DataConfig", skipped: Counter[str]
    ) -> "Iterator[tuple[str, Pair]]":
        """Like ReadPairs, with the date of each pair, such as 20240131T120000Z; "": unknown."""


@dataclass(frozen=True)
class PairsEntry(Entry[ReadPairs]):
    """A file format of sentence pairs. The entry's name is the suffix of the files.

    ```python
    add(PairsEntry(".tmx", "memories:read_pairs", languages="memories:languages"))
    ```
    """

    kind = "pairs"
    languages: str | None = field(default=None, kw_only=True)
    """Path of a function that takes a file and returns its languages."""
    dated: str | None = field(default=None, kw_only=True)
    """Path of a ReadDatedPairs; None: the pairs of the format have no dates."""
    names_languages: bool = field(default=False, kw_only=True)
    """Whether the files say which language each text is in."""


class ComputeScores(Protocol):
    def __call__(
        self, hypotheses: Sequence[str], references: Sequence[str], scoring: "Scoring"
    ) -> "list[Score]":
        """Compute corpus scores; a metric may return several."""


class ScoreLines(Protocol):
    def __call__(
        self,
        systems: Sequence[Sequence[str]],
        references: Sequence[str],
        scoring: "Scoring",
    ) -> "LineScores":
        """Score each line of each system; a system's score is the mean of its lines' scores.

        `systems[s][l]` is system s's translation of line l, and `references[l]` the reference of
        that line. Called once with all systems, so that a model is loaded once.
        """


class CheckMetric(Protocol):
    def __call__(self, options: Mapping[str, Any]) -> None:
        """Raise NMTError if the metric cannot be computed, for example without its program.

        `options` has the records of each OptionsEntry("metrics.NAME", ...) by NAME.
        """


@dataclass(frozen=True)
class MetricEntry(Entry[ComputeScores]):
    """A metric, `metrics=NAME`.

    ```python
    add(MetricEntry("loudness", "shout:loudness", scores_text=True))
    ```
    """

    kind = "metric"
    scores_text: bool = field(default=False, kw_only=True)
    """Whether the metric scores text; False: structures, such as trees."""
    is_paired: bool = field(default=False, kw_only=True)
    """Whether `nmt compare` can test the significance of differences: the metric is one of
    sacreBLEU's, or has `line_scores`."""
    line_scores: str | None = field(default=None, kw_only=True)
    """Path of a ScoreLines, by which `nmt compare` scores each system once."""
    title: str = field(default="", kw_only=True)
    """The metric's name in tables; empty: the entry's name."""
    lower_is_better: bool = field(default=False, kw_only=True)
    """Whether a lower score is better, as for error rates."""
    needs_source: bool = field(default=False, kw_only=True)
    """Whether the metric compares translations with their source lines, too."""
    check: str | None = field(default=None, kw_only=True)
    """Path of a CheckMetric, which nmt calls before any other work."""


class MakeStage(Protocol):
    def __call__(
        self, options: "TranslatorOptions", tokenizer: "Tokenizer", limits: "Limits"
    ) -> "Stage":
        """Make a stage for a model's tokenizer and length limits."""


class StateOfStage(Protocol):
    def __call__(self, options: "TranslatorOptions") -> dict[str, str]:
        """What decides the output besides files and options, such as versions of packages.

        The keys are names for messages.
        """


@dataclass(frozen=True)
class StageEntry(Entry[MakeStage]):
    """A stage of translation, which changes lines before the search and translations after it.

    ```python
    add(StageEntry("terms", "glossaries:Terms", order=30, key=("glossaries", "glossary")))
    ```
    """

    kind = "stage"
    order: int = field(kw_only=True)
    """Lines pass through the stages in ascending order, translations in descending order."""
    key: tuple[str, str] | None = field(default=None, kw_only=True)
    """The name of an OptionsEntry and a key in it. Without a value of the key, nmt leaves the stage
    out. None: nmt always adds the stage."""
    judges: bool = field(default=False, kw_only=True)
    """Whether the stage gives translations a `probability`, for which it needs their log
    probabilities. nmt also adds the stage, if `file` exists, where it returns probabilities."""
    file: str = field(default="", kw_only=True)
    """A file of the model directory that the stage reads, if it exists; empty: none. nmt publishes
    it with the model, and a job does not resume after the file has changed."""
    state: str | None = field(default=None, kw_only=True)
    """Path of a StateOfStage: a job with `file` does not resume with another state."""
    pictures: tuple[str, ...] = field(default=(), kw_only=True)
    """Files that the model's README.md shows, which nmt publishes, too."""


class MakeTransform(Protocol):
    def __call__(
        self, tokenizer_file: "Path", sources: "Sequence[SourceConfig]", seed: int
    ) -> "Transform | None":
        """Make a transform, or None if the options ask for none.

        Each source has its own options: `source.data.plugins["NAME"]`, if there is an
        OptionsEntry("data.NAME", ...). Raises NMTError if it cannot use the vocabulary.
        """


@dataclass(frozen=True)
class TransformEntry(Entry[MakeTransform]):
    """A change of training pairs, such as noise that differs in each pass over the corpus.

    ```python
    add(TransformEntry("noise", "noisy:transform"))
    ```
    """

    kind = "transform"


class MakeOptimizer(Protocol):
    def __call__(self, model: "Transformer", precision: str, **options: Any) -> "Optimizer":
        """Make an optimizer. `precision` is Lightning's; `options` are those of torch's Adam."""


@dataclass(frozen=True)
class OptimizerEntry(Entry[MakeOptimizer]):
    """An optimizer, `optim.optimizer=NAME`.

    ```python
    add(OptimizerEntry("lion", "lion:Lion"))
    ```
    """

    kind = "optimizer"


class ExportModel(Protocol):
    def __call__(
        self, folder: "Path", output: "Path", config: Any, progress: Callable[[str], None]
    ) -> list[str]:
        """Write the model in `folder` to `output`, with the options of `nmt export`.

        The function creates the folder `output`. With `nmt.files.whole_folder`, it appears only
        once it is complete.

        Returns lines to print that compare the translations of both programs.
        """


@dataclass(frozen=True)
class FolderEntry(Entry[Callable[..., Any]]):
    """A kind of folder that a command writes and that `nmt runs` lists and deletes.

    The entry's path names the function that writes such folders.

    ```python
    add(FolderEntry("synthetic", "synthesis:synthesize", marker="identity.json", key="input",
        files="identity.json|train.*"))
    ```
    """

    kind = "folder"
    marker: str = field(kw_only=True)
    """The JSON file that identifies the folder."""
    key: str = field(default="exported_by", kw_only=True)
    """A key that the marker contains."""
    files: str = field(kw_only=True)
    """A regular expression for the names of the files in the folder."""


@dataclass(frozen=True)
class ExporterEntry(Entry[ExportModel]):
    """A program to export models to, `nmt export format=NAME`.

    ```python
    add(ExporterEntry("quick", "quick:export", precision="float32", marker="config.json",
        files="config.json|weights.bin", supports="quick:SUPPORTED"))
    ```
    """

    kind = "export"
    precision: str = field(kw_only=True)
    """The precision of the weights, unless `keys` has "precision"."""
    keys: tuple[str, ...] = field(default=(), kw_only=True)
    """Which of the options `precision` and `sample` the exporter reads."""
    marker: str = field(kw_only=True)
    """A JSON file in the output that contains "exported_by": "nmt"."""
    files: str = field(kw_only=True)
    """A regular expression for the names of the files that the exporter writes."""
    supports: str | None = field(default=None, kw_only=True)
    """Path of an nmt.config.Program, which lists what the other program can reproduce of a model.
    None: nmt does not check."""

    key: ClassVar[str] = "exported_by"

    def program(self) -> "Program | None":
        return None if self.supports is None else import_attribute(self.supports)


@dataclass(frozen=True)
class ImporterEntry(Entry["Callable[[Path], Any]"]):
    """A format to import models from. The entry's name is the suffix of its files.

    The function takes a file, or a folder with such a file, and returns an
    `nmt.plugins.exchange.imported.ImportedModel`.

    ```python
    add(ImporterEntry(".quick", "quick:read_model"))
    ```
    """

    kind = "import"


class FindNamedModel(Protocol):
    def __call__(self, name: str) -> "NamedModel":
        """Find the model that a name with the entry's prefix stands for, or raise NMTError."""


@dataclass(frozen=True)
class ModelsEntry(Entry[FindNamedModel]):
    """A place of models other than this machine's folders. The entry's name is a prefix.

    Names with the prefix may be given wherever a run or model directory is read, such as
    `run=hub:ORG/NAME`. nmt finds a name once per process.

    ```python
    add(ModelsEntry("share:", "share:find_model"))
    ```
    """

    kind = "models"


class RunOnCluster(Protocol):
    def __call__(self, work: "Work") -> dict[str, int]:
        """Do the work of `nmt translate`, `synthesize` or `score` on `work.config.input`.

        The input may also be a folder, a pattern or an address. Each worker calls `work.load`, then
        `work.compute` for blocks. The function writes what the command writes on one machine, and
        returns the sums of the blocks' counts. The options of an OptionsEntry("cluster.NAME", ...)
        are in `work.cluster.plugins["NAME"]`.
        """


@dataclass(frozen=True)
class ClusterEntry(Entry[RunOnCluster]):
    """A program that runs a command on many machines, `cluster=NAME`.

    ```python
    add(ClusterEntry("fleet", "fleet:run", check="fleet:check_installed"))
    ```
    """

    kind = "cluster"
    check: str | None = field(default=None, kw_only=True)
    """Path of a function without arguments that raises NMTError if the program is not installed;
    commands call it before they write anything."""


class AnswerMistake(Protocol):
    def __call__(self, command: str, words: list[str]) -> str:
        """Answer words that are not keys, options or commands; empty if there is no answer.

        `command` is "nmt" if the first word is not a command.
        """


@dataclass(frozen=True)
class AnswerEntry(Entry[AnswerMistake]):
    """Answers to mistakes on the command line and in YAML files, such as keys of other programs.

    ```python
    add(AnswerEntry("mistakes", "answers:answer", check_files="answers:check_files"))
    ```
    """

    kind = "answer"
    check_files: str = field(kw_only=True)
    """Path of a function that takes a command, its words, the folder of --config-dir, and the error
    or None. It raises an NMTError that names the file and line with the mistake."""


@dataclass(frozen=True)
class PythonEntry(Entry[Any]):
    """A name of the Python API, `nmt.NAME`. It must be in `nmt.__all__`."""

    kind = "python"


KINDS: tuple[type[Entry[Any]], ...] = (
    CommandEntry,
    OptionsEntry,
    EngineEntry,
    DocumentEntry,
    CorpusEntry,
    PairsEntry,
    MetricEntry,
    StageEntry,
    TransformEntry,
    OptimizerEntry,
    ExporterEntry,
    FolderEntry,
    ImporterEntry,
    ModelsEntry,
    ClusterEntry,
    AnswerEntry,
    PythonEntry,
)
