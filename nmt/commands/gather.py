"""`nmt gather`: join the parts of an output that several jobs have written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.commands import one_run
from nmt.config import MISSING, PARTS_SUFFIX, Command, NMTError


@dataclass
class GatherConfig:
    """Options of `nmt gather`."""

    output: str = MISSING
    """Output to write, whose parts are in the folder OUTPUT.parts; compressed if its name ends in
    .gz, .bz2, .xz or .zst; may be given without output=."""
    input: str | None = None
    """Input of the parts, if it has been moved; null: the path at which the parts were computed."""
    check_input: bool = True
    """Read the input to check that no line has changed since its part was computed."""
    overwrite: bool = False
    """Replace the output if it exists."""
    remove: bool = False
    """Remove the parts after they have been joined."""


def run(config: GatherConfig) -> None:
    from nmt import translation

    if Path(config.output).is_dir():
        raise NMTError(f"output={config.output}: is a folder; name the output of the parts")
    joined = translation.gather(config.output, config.overwrite, config.input, config.check_input)
    before = "" if joined.is_new else ", which had been joined before"
    print(f"{config.output}: {translation.gathered_in_words(joined.parts)}{before}")
    translation.report_quantiles(translation.counts_of_parts(joined.parts))
    if config.remove:
        translation.remove_parts(joined.parts)


def output_of_parts(words: list[str]) -> dict[str, Any]:
    """The output for the words of `nmt gather OUTPUT`."""
    values = one_run(words, "output")
    # Completion in a shell offers the folder, which exists, instead of the output.
    values["output"] = values["output"].removesuffix("/").removesuffix(PARTS_SUFFIX)
    return values


COMMAND = Command(
    name="gather",
    config=GatherConfig,
    run=run,
    words=output_of_parts,
    usage="OUTPUT",
    examples=("mono.de", "mono.de.gz remove=true"),
)
