"""`nmt export`: write models for other programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import commands, files
from nmt.config import (
    MULTIPLE,
    Command,
    ModelConfig,
    NMTError,
    TokenizerConfig,
    build,
    choice,
    exported_settings,
    plugin_options,
    with_defaults,
)
from nmt.extensions import ExporterEntry
from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.text import Tokenizer

SAMPLE_LINES = 200
"""Number of validation lines to compare."""

PRECISIONS = ("float32", "int8")
"""The precisions of weights that a user can choose."""


@dataclass
class ExportConfig:
    """Options of `nmt export`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    format: str = choice("ctranslate2", names_of=lambda: entries_of(ExporterEntry))
    """{choices}; huggingface is for the transformers library, bergamot for Firefox's engine."""
    precision: str = choice("float32", *PRECISIONS)
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """Folder to write; null: a folder named after the format in the model directory."""
    sample: str | None = None
    """Text file whose lines both programs translate, for comparison; null: 200 lines of the
    validation set."""
    plugins: dict[str, Any] = plugin_options("export")

    def __post_init__(self) -> None:
        usual = {"precision": "float32", "sample": None}
        for key, default in usual.items():
            # Formats come from plugins, so which of them read a key is known only at run time.
            able = formats_with(key)
            if getattr(self, key) != default and self.format not in able:
                formats = " or ".join(able)
                raise NMTError(
                    f"format={self.format}: {key} is for format={formats}; omit it",
                )


def formats_with(key: str) -> list[str]:
    """The formats whose export reads a key of ExportConfig."""
    formats = entries_of(ExporterEntry).items()
    return [name for name, entry in formats if key in entry.keys]


@dataclass(frozen=True)
class Sample:
    """Lines to translate with both programs."""

    origin: str
    """Where the lines are from; if there are no lines, the reason."""
    lines: list[str]
    references: list[str]
    """The lines' reference translations, or none."""


def settings_of_model(
    description: files.ModelDescription,
    tokenizer: "Tokenizer",
) -> dict[str, Any]:
    """The values of all keys that an export of a model must reproduce."""
    training = description.training
    # The description is a file of the user, so it may have any form.
    stored = files.within(training, "config", "tokenizer")
    if not isinstance(stored, dict):
        stored = {}
    keys = with_defaults(TokenizerConfig, stored)
    # The description may lack these, or contradict the file.
    keys["kind"] = tokenizer.kind
    keys["normalization"] = tokenizer.normalization.name
    keys["vocabulary_size"] = tokenizer.vocabulary_size
    kind = files.within(training, "config", "data", "kind")
    return exported_settings(ModelConfig(**description.model), keys, kind, [*tokenizer.tags])


def sample_of(folder: Path, config: ExportConfig, prepared: str | None = None) -> Sample:
    """The lines of `sample`, or the first lines of the validation set of a model's corpus."""
    from nmt import data, text

    if config.sample:
        return Sample(config.sample, list(text.read_texts(config.sample)), [])
    try:
        record = files.read_description(folder).training
        corpus = data.corpus_of(folder, record, prepared)
        sources, references = corpus.text("valid")
        lines = corpus.tagged("valid", sources[:SAMPLE_LINES])
    except NMTError as error:
        # A model without its corpus can be exported, but not compared.
        return Sample(str(error), [], [])
    path = corpus.folder / f"valid.{corpus.source_language}"
    origin = f"the first lines of {path}"
    return Sample(origin, lines, references[:SAMPLE_LINES])


def heading(description: files.ModelDescription, library: str) -> str:
    """The beginning of an exported folder's README.md; `library` is the program for the export."""
    # The languages come from a file, and Markdown could contain anything.
    title = f"{files.plain(description.source)}-{files.plain(description.target)}"
    if description.source == MULTIPLE:
        title = files.plain(description.model["name"])
    direction = files.plain(files.direction_in_words(description))
    about = f"A Transformer that translates {direction}, exported with `nmt export`."
    record = description.record
    if record.license is not None:
        # A conversion does not change the license.
        about += f" Its license is {files.plain(record.license)}, as the original states."
    return f"{files.front_matter(description, library)}# {title}\n\n{about}\n"


def run_export(config: ExportConfig) -> None:
    print("\n".join(write_export(config)[1]))


def export(run: str | Path = "runs/latest", **options: Any) -> Path:
    """Export a model for another program, like `nmt export`, and return the folder."""
    return write_export(build(ExportConfig, {"run": str(run), **options}))[0]


def write_export(config: ExportConfig) -> tuple[Path, list[str]]:
    """Write the model; if the other program is installed, also compare it with the original.

    Returns the folder and the lines to print.
    """
    folder = files.find_model_directory(config.run)
    entry = entries_of(ExporterEntry)[config.format]
    name = name_of_export(config)
    precision = config.precision if "precision" in entry.keys else entry.precision
    if not config.output and files.is_prefixed(config.run):
        # The folder of such a model is a cache.
        raise NMTError(f"output: name a folder for the export of {config.run}")
    output = Path(config.output or folder / name)
    if not may_write(output, entry.marker):
        problem = "exists and is not an earlier export"
        raise NMTError(f"output={output}: {problem}; pass another folder")
    with commands.talker().status("writing") as status:
        comparison = entry.load()(folder, output.resolve(), config, status.update)
    summary = f"{output}: {folder} with format={config.format} precision={precision}"
    return output, [summary, *comparison]


def name_of_export(config: ExportConfig) -> str:
    """The default name of the folder of an export."""
    if "precision" in entries_of(ExporterEntry)[config.format].keys:
        return f"{config.format}-{config.precision}"
    # The format has one precision, so the folder's name need not include it.
    return config.format


def may_write(output: Path, marker: str) -> bool:
    """Whether an export may replace a folder: it is missing, empty, or an export by nmt.

    `marker` is the name of a JSON file that says so.
    """
    if not output.exists():
        return True
    if output.is_dir() and not any(output.iterdir()):
        return True
    try:
        tree = files.read_mapping(output / marker, files.parse_json)
    except NMTError:
        return False
    # The export must not replace a folder that nmt did not write.
    return tree.get("exported_by") == "nmt"


EXPORT = Command(
    "export",
    ExportConfig,
    run_export,
    commands.one_run,
    usage="[RUN]",
    examples=("runs/corpus-30min precision=int8", "runs/phone format=bergamot output=exported"),
)
