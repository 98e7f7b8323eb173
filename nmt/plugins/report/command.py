"""`nmt report`: write a page about a training run."""

from dataclasses import dataclass
from pathlib import Path

from nmt.commands import train
from nmt.commands.console import talker
from nmt.commands.words import one_run
from nmt.config import MISSING, Command, DecodeConfig, compose, number, require_choice, to_tree


@dataclass
class ReportConfig:
    """The tree of `nmt report`."""

    run: str = "runs/latest"
    """The run, finished or still training; a word without = is short for it."""
    output: str | None = None
    """The HTML page to write; null: report.html in the run."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: where the run found it."""
    split: str = "valid"
    """The set that is translated: valid or test."""
    sentences: int | None = number(500, 0, 10**9)
    """The number of its first sentences to translate; 0 for none, null for all."""
    examples: int = number(12, 0, 10_000)
    """The number of best, of median and of worst translations on the page."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require_choice("split", self.split, ("valid", "test"))


def run(config: ReportConfig) -> None:
    """Write the page, and print its path."""
    from nmt.plugins.report.run import find_run, open_run

    console = talker()
    folder = find_run(config.run)  # before the seconds that Lightning takes to load
    opened = open_run(folder, config.prepared)
    with console.status("loading"):
        from nmt.files import write_file
        from nmt.plugins.report.held_out import newest_facts, translate_held_out
        from nmt.plugins.report.pages import check_output
        from nmt.plugins.report.training_page import training_page

    output = check_output(Path(config.output or folder / "report.html"), "report.html")
    facts = newest_facts(opened)
    found = translate_held_out(opened, config.split, config.sentences, config.decode, config.device, console)
    write_file(output, training_page(opened, facts, *found, config.examples, to_tree(compose(train.COMMAND, []))))
    print(output)


COMMAND = Command(
    "report",
    ReportConfig,
    run,
    one_run,
    usage="[RUN]",
    example="runs/mine",
    texts=("run",),
    memory="pass device=cpu, as a training may have filled the device, or sentences=0 to translate nothing",
    groups={"decode": "paper"},
)
