"""Parts of an input that several jobs translate, and the names of their outputs."""

import re
from dataclasses import dataclass
from pathlib import Path

from nmt.config.values import shown
from nmt.errors import SettingError

MOST_PARTS = 100_000
"""Each part is two files in one folder."""
PART = re.compile(r"0*([1-9]\d{0,5})/0*([1-9]\d{0,5})")
PART_NAME = re.compile(r"(\d{3,6})-of-(\d{3,6})")
PARTS_SUFFIX = ".parts"
"""Beside the output `mono.de`, the folder `mono.de.parts` has the outputs of its parts."""


@dataclass(frozen=True)
class Part:
    """Part `number`, counted from 1, of `count` parts of an input."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def name(self) -> str:
        """The name of the part's output in the folder, such as 003-of-016."""
        # Names of equal length are listed in the order of the numbers.
        width = max(3, len(str(self.count)))
        return f"{self.number:0{width}}-of-{self.count:0{width}}"

    def output_in(self, folder: Path) -> Path:
        return folder / self.name

    def record_in(self, folder: Path) -> Path:
        """The file that says what the part's output was computed from."""
        return folder / f"{self.name}.json"


def parts_folder(output: str) -> Path:
    """The folder with the parts of an output."""
    return Path(f"{output}{PARTS_SUFFIX}")


def parse_part(value: str) -> Part:
    """The part that a user writes as I/N; SettingError for anything else."""
    match = PART.fullmatch(value)
    if match:
        part = Part(int(match[1]), int(match[2]))
        if part.number <= part.count <= MOST_PARTS:
            return part
    raise SettingError(
        f"must be I/N, such as 3/16, with I from 1 to N, and N at most {MOST_PARTS:,}",
        key="part",
        value=shown(value),
    )


def part_of_name(name: str) -> Part | None:
    """The part whose output has this name; None for other names."""
    match = PART_NAME.fullmatch(name)
    if match is None:
        return None
    part = Part(int(match[1]), int(match[2]))
    return part if part.name == name and 1 <= part.number <= part.count else None
