"""`nmt export` and `nmt import`: exchange models with other programs."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt import commands, files
from nmt.config import (
    LANGUAGE,
    MISSING,
    MULTIPLE,
    Command,
    ModelConfig,
    NMTError,
    TokenizerConfig,
    build,
    choice,
    exported_settings,
    one_line,
    plugin_options,
    shown,
    with_defaults,
)
from nmt.extensions import ExporterEntry, ImporterEntry
from nmt.plugins.exchange.hub_card import REPOSITORY
from nmt.plugins.exchange.hub_download import PREFIX, download, is_hub_name, parse
from nmt.plugins.exchange.hub_files import MULTILINGUAL
from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.plugins.exchange.imported import ImportedModel
    from nmt.text import Tokenizer

SAMPLE_LINES = 200
"""Number of validation lines to compare."""


@dataclass
class ExportConfig:
    """Options of `nmt export`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    format: str = choice("ctranslate2", names_of=lambda: entries_of(ExporterEntry))
    """{choices}; huggingface is for the transformers library, bergamot for Firefox's engine."""
    precision: str = choice("float32", "float32", "int8")
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
    if "precision" in entry.keys:
        precision = config.precision
        name = f"{config.format}-{precision}"
    else:
        # The format has one precision, so the folder's name need not include it.
        precision = entry.precision
        name = config.format
    output = Path(config.output or folder / name)
    if not may_write(output, entry.marker):
        problem = "exists and is not an earlier export"
        raise NMTError(f"output={output}: {problem}; pass another folder")
    with commands.talker().status("writing") as status:
        comparison = entry.load()(folder, output.resolve(), config, status.update)
    summary = f"{output}: {folder} with format={config.format} precision={precision}"
    return output, [summary, *comparison]


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


@dataclass
class ImportConfig:
    """Options of `nmt import`."""

    path: str = MISSING
    """Model on the Hugging Face Hub (MarianMT, M2M-100, NLLB, SMaLL-100, mBART-50), as hub:ORG/NAME
    or hub:ORG/NAME@REVISION, or a folder with its files; a Marian .npz, a folder with an .npz and
    its decoder.yml, or one with a Firefox model (.bin) and its .spm."""
    output: str = MISSING
    """Model directory to write."""
    source: str | None = None
    """Source language, such as en; null: the language that the imported folder names."""
    target: str | None = None
    """Target language; null: as for `source`."""
    overwrite: bool = False
    """Replace a model directory in `output`."""
    verify: bool = True
    """Compare M2M-100, NLLB, SMaLL-100 and mBART-50 models with the transformers library, if it is
    installed: tokens, logits and translations."""

    def __post_init__(self) -> None:
        for key, code in (("source", self.source), ("target", self.target)):
            if code is not None and not LANGUAGE.fullmatch(code):
                raise NMTError(f"{key}={shown(code)}: must be a language code, such as en")


def run_import(config: ImportConfig) -> None:
    from nmt.model import check_new

    # First, because downloading and reading a model take long.
    check_new(Path(config.output), config.overwrite)
    path = Path(config.path)
    from_hub = dict[str, str]()
    if is_hub_name(config.path):
        snapshot = download(parse(config.path), commands.talker().print)
        path = snapshot.folder
        from_hub = {"base_model": snapshot.repository, "revision": snapshot.commit}
    with commands.talker().status("reading"):
        record = write_imported(path, config, from_hub)
    summary = f"{config.output}: {config.path}, {record.imported}"
    if record.license is not None:
        summary += f", license {record.license}"
    if record.revision is not None:
        summary += f", commit {record.revision}"
    print(summary)
    if config.verify and is_multilingual(path):
        with commands.talker().status("comparing with transformers"):
            print(compared(path, Path(config.output)))


def write_imported(
    path: Path, config: ImportConfig, from_hub: dict[str, str]
) -> files.TrainingRecord:
    """Read the model in a file or folder and write it as a model directory.

    `from_hub` are entries for the model's record, which is returned. The model's memory is free
    then, because a comparison loads two models.
    """
    from nmt.model import write_model_directory

    imported = read_model(path)
    source, target = imported.languages
    with TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "tokenizer.model"
        imported.tokenizer.save(vocabulary)
        description = files.ModelDescription(
            asdict(imported.model.config),
            imported.tokenizer.vocabulary_size,
            config.source or source,
            config.target or target,
            files.sha256(vocabulary),
            {
                "imported": f"trained by {imported.trained_by}",
                "vocabulary": imported.tokenizer.kind,
                "length_penalty": imported.length_penalty,
                # Marian divides by |Y|^alpha; the value was chosen for that formula.
                "length_penalty_kind": "marian",
                **imported.record,
                **from_hub,
            },
        )
        parameters = sum(parameter.numel() for parameter in imported.model.parameters())
        card = files.model_card(description, parameters)
        output = Path(config.output)
        write_model_directory(output, imported.model, vocabulary, description, card)
    return description.record


def compared(path: Path, output: Path) -> str:
    """Compare an imported model with the original, and record the result in its directory."""
    from nmt.plugins.exchange.certificate import can_certify, certify

    if not can_certify():
        return "not compared with the original: transformers is not installed"
    try:
        result = certify(path, output)
    # The library raises many kinds of errors for models and tokenizers that it cannot read.
    except Exception as error:
        return f"not compared with the original: transformers cannot read it ({one_line(error)})"
    certificate = result.in_words()
    if not result.holds:
        warning = "the imported model differs from the original in transformers; do not rely on it"
        commands.talker().print(f"warning: {output}: {warning}")
    description = files.read_description(output)
    description.training["certificate"] = certificate
    shapes = files.stored_shapes(output / "model.safetensors").values()
    card = files.model_card(description, sum(map(math.prod, shapes)))
    files.write_file(output / "config.json", json.dumps(asdict(description), indent=2) + "\n")
    files.write_file(output / "README.md", card)
    return certificate


def is_multilingual(path: Path) -> bool:
    """Whether a folder contains a model of a kind that MULTILINGUAL lists."""
    config = path / "config.json"
    if not config.is_file():
        return False
    return files.read_mapping(config, files.parse_json).get("model_type") in MULTILINGUAL


def read_model(path: Path) -> "ImportedModel":
    """The model in a file or folder, with the reader for its format."""
    from nmt.plugins.exchange.marian_files import read_marian
    from nmt.plugins.exchange.marian_hub import read_hub
    from nmt.plugins.exchange.multilingual_hub import read_multilingual

    if path.suffix == ".npz" or any(path.glob("*decoder.yml")):
        return read_marian(path)
    if is_multilingual(path):
        return read_multilingual(path)
    if (path / "config.json").is_file():
        return read_hub(path)
    # After the hub's config.json, because such a folder may also have a pytorch_model.bin.
    for suffix, entry in entries_of(ImporterEntry).items():
        if path.suffix == suffix or any(path.glob(f"*{suffix}")):
            return entry.load()(path)  # type: ignore[no-any-return]
    if REPOSITORY.fullmatch(str(path)) and not path.exists():
        raise NMTError(f"{path}: no such file or folder; to download it, pass {PREFIX}{path}")
    expected = (
        "not a Marian .npz, nor a folder with MarianMT's config.json, Marian's decoder.yml or "
        "Firefox's .bin"
    )
    raise NMTError(f"{path}: {expected} (unpack .gz files first)")


def import_words(words: list[str]) -> dict[str, Any]:
    """The configuration for the words of `nmt import PATH`."""
    return commands.one_run(words, "path")


IMPORT = Command(
    "import",
    ImportConfig,
    run_import,
    import_words,
    usage="PATH",
    examples=(
        "hub:facebook/nllb-200-distilled-600M output=runs/nllb",
        "opus-mt-en-de output=runs/opus",
        "model.npz output=runs/marian source=en target=de",
    ),
)
