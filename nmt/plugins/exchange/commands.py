"""`nmt export` and `nmt import`: exchange models with other programs."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt import commands, files
from nmt.config import (
    LANGUAGE,
    MISSING,
    Command,
    ModelConfig,
    NMTError,
    TokenizerConfig,
    build,
    choice,
    exported_settings,
    plugin_options,
    require,
    shown,
    with_defaults,
)
from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.text import Tokenizer

SAMPLE_LINES = 200
"""Number of validation lines to compare."""


@dataclass
class ExportConfig:
    """Options of `nmt export`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    format: str = choice("ctranslate2", names_of=lambda: entries_of("export"))
    """{choices}; huggingface is for the transformers library, bergamot for Firefox's engine."""
    precision: str = choice("float32", "float32", "int8")
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """Folder to write; null: a folder named after the format in the model directory."""
    sample: str | None = None
    """Text file whose lines both programs translate, for comparison; null: 200 lines of the validation set."""
    plugins: dict[str, Any] = plugin_options("export")

    def __post_init__(self) -> None:
        for key in ("precision", "sample"):
            able = [
                name for name, entry in entries_of("export").items() if key in entry.facts["keys"]
            ]
            is_used = getattr(self, key) not in ("float32", None)
            problem = f"format={self.format}: {key} is for format={' or '.join(able)}; omit it"
            require(self.format in able or not is_used, problem)


def settings_of_model(
    description: files.ModelDescription, tokenizer: "Tokenizer"
) -> dict[str, Any]:
    """The values of all keys that an export of a model must reproduce."""
    training = description.training
    stored = files.within(training, "config", "tokenizer")
    keys = with_defaults(TokenizerConfig, stored if isinstance(stored, dict) else {})
    # The description may lack these, or contradict the file.
    keys["kind"] = tokenizer.kind
    keys["normalization"] = tokenizer.normalization.name
    keys["vocabulary_size"] = tokenizer.vocabulary_size
    kind = files.within(training, "config", "data", "kind")
    return exported_settings(ModelConfig(**description.model), keys, kind, [*tokenizer.tags])


def sample_of(
    folder: Path, config: ExportConfig, prepared: str | None = None
) -> tuple[str, list[str], list[str]]:
    """Where the lines to compare are from (if there are none, why), the lines, and their references, if there are."""
    from nmt import data, text

    if config.sample:
        return config.sample, list(text.read_texts(config.sample)), []
    try:
        description = files.read_description(folder)
        corpus = data.corpus_of(folder, description.training, prepared)
        sources, targets = (side[:SAMPLE_LINES] for side in corpus.text("valid"))
    except NMTError as error:
        return str(error), [], []
    return f"the first lines of {corpus.folder / f'valid.{description.source}'}", sources, targets


def run_export(config: ExportConfig) -> None:
    print("\n".join(write_export(config)[1]))


def export(run: str | Path = "runs/latest", **options: Any) -> Path:
    """Export a model for another program, like `nmt export`, and return the folder that was written."""
    return write_export(build(ExportConfig, {"run": str(run), **options}))[0]


def write_export(config: ExportConfig) -> tuple[Path, list[str]]:
    """Write the model; if the other program is installed, also compare it with the original.

    Returns the folder and the lines to print.
    """
    folder, entry = files.find_model_directory(config.run), entries_of("export")[config.format]
    has_precisions = "precision" in entry.facts["keys"]
    precision = config.precision if has_precisions else entry.facts["precision"]
    name = f"{config.format}-{precision}" if has_precisions else config.format
    output, is_free = Path(config.output or folder / name), False
    with suppress(NMTError):
        is_free = not output.exists() or (output.is_dir() and not any(output.iterdir()))
        marker = output / entry.facts["marker"]
        is_free = (
            is_free or files.read_mapping(marker, files.parse_json).get("exported_by") == "nmt"
        )
    require(is_free, f"output={output}: exists and is not an earlier export; pass another folder")
    with commands.talker().status("writing") as status:
        comparison = entry.load()(folder, output.resolve(), config, status.update)
    return output, [
        f"{output}: {folder} with format={config.format} precision={precision}",
        *comparison,
    ]


EXPORT = Command(
    *("export", ExportConfig, run_export, commands.one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min precision=int8", "runs/phone format=bergamot output=exported"),
)


@dataclass
class ImportConfig:
    """Options of `nmt import`."""

    path: str = MISSING
    """MarianMT folder from the Hugging Face Hub, a Marian .npz, a folder with an .npz and its decoder.yml, or a
    folder with a Firefox model (.bin) and its .spm."""
    output: str = MISSING
    """Model directory to write."""
    source: str | None = None
    """Source language, such as en; null: the language that the imported folder names."""
    target: str | None = None
    """Target language; null: as for `source`."""

    def __post_init__(self) -> None:
        for key, code in (("source", self.source), ("target", self.target)):
            fits = code is None or LANGUAGE.fullmatch(code) is not None
            require(fits, f"{key}={shown(code)}: must be a language code, such as en")


def run_import(config: ImportConfig) -> None:
    from nmt.model import check_ours, write_model_directory
    from nmt.plugins.exchange.marian import read_model

    output = Path(config.output)
    check_ours(output)
    with commands.talker().status("reading"), TemporaryDirectory() as folder:
        model, trained_by, tokenizer, alpha, (source, target) = read_model(Path(config.path))
        file, origin = Path(folder) / "tokenizer.model", f"trained by {trained_by}"
        tokenizer.save(file)
        training = {"imported": origin, "length_penalty": alpha, "length_penalty_kind": "marian"}
        languages, size = (
            (config.source or source, config.target or target),
            tokenizer.vocabulary_size,
        )
        description = files.ModelDescription(
            asdict(model.config), size, *languages, files.sha256(file), training
        )
        card = files.model_card(
            description, sum(parameter.numel() for parameter in model.parameters())
        )
        write_model_directory(output, model, file, description, card)
    print(f"{output}: {config.path}, {origin}")


IMPORT = Command(
    *("import", ImportConfig, run_import, lambda words: commands.one_run(words, "path")),
    usage="PATH",
    examples=("opus-mt-en-de output=runs/opus", "model.npz output=runs/marian source=en target=de"),
)
