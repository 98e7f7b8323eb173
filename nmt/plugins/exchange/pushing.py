"""`nmt push`: publish a model directory on the Hugging Face Hub."""

import math
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt import __version__, commands, files
from nmt.config import MISSING, Command, NMTError, build, choice, shown
from nmt.extensions import ExporterEntry
from nmt.plugins.exchange.exporting import ExportConfig, name_of_export, write_export
from nmt.plugins.exchange.hub_card import LICENSE, metadata_of
from nmt.plugins.exchange.hub_contents import (
    Upload,
    left_out,
    local_paths,
    uploads_of_export,
    uploads_of_model,
)
from nmt.plugins.exchange.hub_files import CARD
from nmt.plugins.exchange.hub_names import COMMIT, PREFIX, HubName, in_bytes, parse
from nmt.plugins.exchange.published_card import PublishedExport, published_card
from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.plugins.exchange.hub_upload import Destination

USAGE = "[RUN] ORG/NAME"


@dataclass
class PushConfig:
    """Options of `nmt push`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    repository: str = MISSING
    """Repository on the Hugging Face Hub, as ORG/NAME; may be given without repository=."""
    revision: str = HubName.revision
    """Branch to commit to; created if it is missing."""
    message: str | None = None
    """Message of the commit; null: the languages of the model and the version of nmt."""
    private: bool = False
    """Create a missing repository as a private one."""
    license: str | None = None
    """License of the model for its card, such as cc-by-4.0; null: as in its README.md."""
    export: list[str] = choice([], names_of=lambda: entries_of(ExporterEntry))
    """Formats to export the model to, such as [ctranslate2,huggingface]; each goes into a folder of
    the repository."""
    overwrite: bool = False
    """Replace files of another program's model in the repository."""
    dry_run: bool = False
    """Only list the files, without asking the hub."""

    def __post_init__(self) -> None:
        if self.license is not None and not LICENSE.fullmatch(self.license):
            raise NMTError(f"license={shown(self.license)}: must be an identifier, as in cc-by-4.0")
        if COMMIT.fullmatch(self.revision):
            raise NMTError(f"revision={self.revision}: must be a branch, not a commit")
        if self.message is not None and not self.message.strip():
            raise NMTError("message: must not be empty")

    @property
    def name(self) -> HubName:
        """The name of the published model; NMTError for a malformed one."""
        repository = self.repository.removeprefix(PREFIX)
        if "@" in repository:
            raise NMTError(f"repository={shown(self.repository)}: pass a branch as revision=BRANCH")
        return parse(f"{PREFIX}{repository}@{self.revision}")


def run_push(config: PushConfig) -> None:
    # Here, because the command's help must not load it.
    from nmt.plugins.exchange.hub_upload import push

    report = commands.talker().print
    folder = files.find_model_directory(config.run)
    description = files.read_description(folder)
    # Before exports, which take long.
    destination = None if config.dry_run else open_destination(config)
    with TemporaryDirectory() as temporary:
        exports = export_all(config, folder, Path(temporary))
        uploads = uploads_of(config, folder, exports)
        print_uploads(config, folder, uploads, destination)
        texts = notices(config, folder, description, uploads)
        if destination is not None:
            texts += destination.notices(uploads)
        for text in texts:
            report(f"notice: {text}")
        if destination is None:
            return
        message = config.message or message_for(description)
        pushed = push(destination, uploads, message, config.private, report)
    if not pushed.is_new:
        print(f"{config.name} has these files already, so there is no new commit")
    print_result(config.name, pushed.commit, description)


def open_destination(config: PushConfig) -> "Destination":
    """The repository as it is now; NMTError if the user may not write to it or should not."""
    from nmt.plugins.exchange.hub_upload import check_login, destination_of

    check_login(config.name)
    destination = destination_of(config.name, config.overwrite)
    if config.private and destination.is_public:
        advice = "make it private on its page first, or leave out private=true"
        raise NMTError(f"{config.name}: private=true: the repository is public; {advice}")
    return destination


def print_uploads(
    config: PushConfig, folder: Path, uploads: list[Upload], destination: "Destination | None"
) -> None:
    """Print the files with their sizes, and where they go."""
    for upload in uploads:
        print(upload)
    size = sum(upload.size for upload in uploads)
    place = str(config.name)
    if destination is not None:
        place += f" ({destination.in_words(config.private)})"
    print(f"{len(uploads)} files, {in_bytes(size)}, of {folder} for {place}", flush=True)


def export_all(config: PushConfig, folder: Path, parent: Path) -> dict[str, Path]:
    """Export a model to all formats that the user asks for: format -> folder."""
    folders = {}
    for format in dict.fromkeys(config.export):
        options = build(ExportConfig, {"run": str(folder), "format": format})
        output = parent / name_of_export(options)
        options.output = str(output)
        # The comparison with the original is in the README.md of the export.
        write_export(options)
        folders[format] = output
    return folders


def uploads_of(config: PushConfig, folder: Path, exports: dict[str, Path]) -> list[Upload]:
    """All files to upload."""
    published = [PublishedExport(format, path.name) for format, path in exports.items()]
    card = published_card(card_of(folder), config.name, config.license, published)
    uploads = uploads_of_model(folder, card)
    for path in exports.values():
        uploads += uploads_of_export(path)
    return uploads


def card_of(folder: Path) -> str:
    """The text of a model's card, as the user may have edited it."""
    path = folder / CARD
    if path.exists():
        return files.read_text(path, files.SMALL)
    shapes = files.stored_shapes(folder / "model.safetensors").values()
    return files.model_card(files.read_description(folder), sum(map(math.prod, shapes)))


def notices(
    config: PushConfig, folder: Path, description: files.ModelDescription, uploads: list[Upload]
) -> list[str]:
    """What the user should know before others can read the files."""
    texts = []
    rest = left_out(folder)
    if rest:
        texts.append(f"not uploaded: {rest}")
    stated = metadata_of(folder / CARD).get("license")
    if config.license is None and stated is None:
        texts.append("the license is unknown; set it with license=ID, such as license=cc-by-4.0")
    original = description.record.license
    if config.license is not None and original not in (None, config.license):
        texts.append(f"the model that this one was made from has the license {shown(original)}")
    paths = [*dict.fromkeys(local_paths(description.training))]
    if paths:
        texts.append(f"config.json names files of this machine, such as {shown(paths[0])}")
    return texts


def message_for(description: files.ModelDescription) -> str:
    return f"Model {files.direction_in_words(description)}, uploaded with nmt {__version__}"


def print_result(name: HubName, commit: str, description: files.ModelDescription) -> None:
    """Print where the model is, and the command with which anybody can use it."""
    from huggingface_hub.constants import ENDPOINT

    print(f"{ENDPOINT}/{name.repository}")
    print(f"commit {commit}")
    print(files.usage_in_shell(description, str(name)))


def run_and_repository(words: list[str]) -> dict[str, Any]:
    """The configuration for the words of `nmt push [RUN] ORG/NAME`."""
    if len(words) > 2:
        raise NMTError(f"{words[2]}: pass one run and one repository, `nmt push {USAGE}`")
    if len(words) == 2:
        return {"run": words[0], "repository": words[1]}
    [word] = words
    # runs/mine looks like a repository, too.
    if Path(word).is_dir():
        return {"run": word}
    return {"repository": word}


PUSH = Command(
    "push",
    PushConfig,
    run_push,
    run_and_repository,
    usage=USAGE,
    examples=(
        "runs/corpus-30min someone/corpus-en-de license=cc-by-4.0",
        "runs/corpus-30min someone/corpus-en-de export=[ctranslate2,huggingface] --dry-run",
    ),
    options={"--dry-run": "dry_run=true"},
)
