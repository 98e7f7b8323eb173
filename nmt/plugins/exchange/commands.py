"""`nmt export` and `nmt import`: exchange models with other programs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt import commands, files
from nmt.config import MISSING, Command, NMTError, choice, require


@dataclass
class ExportConfig:
    """Options of `nmt export`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    format: str = choice("ctranslate2", "ctranslate2", "huggingface")
    """ctranslate2, or huggingface for the transformers library."""
    precision: str = choice("float32", "float32", "int8")
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """Folder to write; null: ctranslate2-PRECISION or huggingface in the model directory."""
    sample: str | None = None
    """ctranslate2: file of lines to translate with both programs and compare; null: 200 lines of the validation set."""

    def __post_init__(self) -> None:
        fits = self.format == "ctranslate2" or (self.precision == "float32" and self.sample is None)
        require(fits, f"format={self.format}: precision and sample are for format=ctranslate2; omit them")


def run_export(config: ExportConfig) -> None:
    """Write the model; for CTranslate2, also compare it with the original."""
    folder, comparison = files.find_model_directory(config.run), list[str]()
    name = f"ctranslate2-{config.precision}" if config.format == "ctranslate2" else "huggingface"
    output = Path(config.output or folder / name)
    try:
        is_free = not output.exists() or (output.is_dir() and not any(output.iterdir()))
        is_free = is_free or files.read_mapping(output / "config.json", files.parse_json).get("exported_by") == "nmt"
    except NMTError:
        is_free = False
    require(is_free, f"output={output}: exists and is not an earlier export; pass another folder")
    with commands.talker().status("writing") as status:
        if config.format == "huggingface":
            from nmt.plugins.exchange import huggingface

            huggingface.write(folder, output.resolve())
        else:
            from nmt.plugins.exchange import ctranslate2

            comparison = ctranslate2.export(folder, output.resolve(), config, status.update)
    print(f"{output}: {folder} with format={config.format} precision={config.precision}", *comparison, sep="\n")


EXPORT = Command(
    *("export", ExportConfig, run_export, commands.one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min precision=int8", "runs/corpus-30min format=huggingface output=exported"),
)


@dataclass
class ImportConfig:
    """Options of `nmt import`."""

    path: str = MISSING
    """MarianMT folder from the Hugging Face Hub, a Marian .npz, or a folder with an .npz and its decoder.yml."""
    output: str = MISSING
    """Model directory to write."""
    source: str | None = None
    """Source language, such as en; null: the language that the imported folder names."""
    target: str | None = None
    """Target language; null: as for `source`."""


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
        languages, size = (config.source or source, config.target or target), tokenizer.vocabulary_size
        description = files.ModelDescription(asdict(model.config), size, *languages, files.sha256(file), training)
        card = files.model_card(description, sum(parameter.numel() for parameter in model.parameters()))
        write_model_directory(output, model, file, description, card)
    print(f"{output}: {config.path}, {origin}")


IMPORT = Command(
    *("import", ImportConfig, run_import, lambda words: commands.one_run(words, "path")),
    usage="PATH",
    examples=("opus-mt-en-de output=runs/opus", "model.npz output=runs/marian source=en target=de"),
)
