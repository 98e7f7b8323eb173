"""Translated text as training pairs: back-translation and distillation."""

from nmt.extensions import Add, CommandEntry, FolderEntry

# Including those of a job that is not complete, such as .translations.jsonl.nmt-partial.
FILES = (
    r"identity\.json",
    r"summary\.json",
    r"train\.[\w.-]+",
    r"\.?translations\.jsonl[^/]*",
    r"translations\.jsonl\.parts/[^/]*",
    r"translations\.jsonl\.blocks/.*",
    r"\.lock",
)


def register(add: Add) -> None:
    command = CommandEntry(
        "synthesize",
        "nmt.plugins.synthesize.command:COMMAND",
        summary=(
            "Write synthetic pairs for training: back-translation, or distillation for a smaller "
            "model."
        ),
    )
    folder = FolderEntry(
        "synthetic",
        "nmt.plugins.synthesize.synthesis:synthesize",
        marker="identity.json",
        key="input",
        files="|".join(FILES),
    )
    add(command)
    add(folder)
