"""Translation memories: lines that a person has translated before."""

from dataclasses import dataclass

from nmt.config import number, setting
from nmt.extensions import Add, OptionsEntry, StageEntry

FILES = "nmt.plugins.memory.files:files_of"


@dataclass
class MemoryConfig:
    """Translation memories, and which of their entries to list."""

    memory: list[str] = setting([], files=FILES)
    """Translation memories, such as project.tmx; one file or a list: .tmx, another file of pairs
    that `nmt plugins` lists, SOURCE:TARGET, or the common prefix of two files; a line that is in a
    memory gets its translation from there, see docs/guides/memory.md."""
    memory_minimum: float = number(0.75, 0.5, 1.0)
    """Least similarity of the entries to list for other lines; 1: list none."""


def register(add: Add) -> None:
    # First, because a line that is in the memory has nothing to protect or to search for.
    path = "nmt.plugins.memory"
    add(StageEntry("memory", f"{path}.stage:memory_stage", order=10, key=("memory", "memory")))
    add(OptionsEntry("translator.memory", f"{path}.plugin:MemoryConfig", is_inline=True))
