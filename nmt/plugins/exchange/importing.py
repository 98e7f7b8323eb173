"""`nmt import`: read models of other programs."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt import commands, files
from nmt.config import LANGUAGE, MISSING, Command, NMTError, one_line, shown
from nmt.extensions import ImporterEntry
from nmt.plugins.exchange.hub_card import REPOSITORY
from nmt.plugins.exchange.hub_download import download
from nmt.plugins.exchange.hub_files import MULTILINGUAL, TRANSFORMERS
from nmt.plugins.exchange.hub_names import PREFIX, is_hub_name, parse
from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.plugins.exchange.imported import ImportedModel


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
        snapshot = download(parse(config.path), TRANSFORMERS, commands.talker().print)
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
