"""The sizes of the GPU benchmark: full, or about a fiftieth of them for a dry run on a CPU."""

# So that an old Python gets as far as the message about its version.
from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sizes:
    """How much the steps compute."""

    models: dict[str, list[str]]
    """Overrides of `nmt train` for the models that the rows call base and big."""
    vocabulary: int
    tokens: int
    """Tokens per update on each side, with padding."""
    longest: int
    """Tokens per sentence at most, end symbol included."""
    pairs: int
    warm_updates: int
    timed_updates: int
    toy_updates: int
    lines: int
    """Sentences to translate."""
    translation_tokens: int
    """The length of a translation, because a random model never ends one."""
    batch_tokens: tuple[int, int]
    """Small and large batches of a search."""


FULL = Sizes(
    models={"base": ["model=base"], "big": ["model=big"]},
    vocabulary=37_000,
    tokens=25_000,
    longest=257,
    pairs=200_000,
    warm_updates=20,
    timed_updates=60,
    toy_updates=100,
    lines=3_000,
    translation_tokens=40,
    batch_tokens=(2_000, 32_000),
)
TINY = ["model=tiny", "model.encoder_layers=2", "model.decoder_layers=2"]
DRY = Sizes(
    models={"base": TINY, "big": [*TINY, "model.d_ff=256"]},
    vocabulary=1_000,
    tokens=600,
    longest=60,
    pairs=2_000,
    warm_updates=1,
    timed_updates=2,
    toy_updates=10,
    lines=16,
    translation_tokens=8,
    batch_tokens=(100, 600),
)


@dataclass(frozen=True)
class Settings:
    """Where a run of the benchmark computes, reads and writes."""

    is_dry: bool
    out: str
    """Folder for the results."""
    work: str
    """Folder for corpora, models and runs, which is deleted at the end."""
    quickstart: str
    """Folder of the prepared quickstart corpus, or an empty string."""
    card: str
    """H100, H200 or, if the expected figures fit neither, an empty string."""

    @property
    def sizes(self) -> Sizes:
        return DRY if self.is_dry else FULL

    @property
    def device(self) -> torch.device:
        import torch  # not above: gpu.py starts without it

        return torch.device("cpu" if self.is_dry else "cuda")

    @property
    def precision(self) -> str:
        """Of `nmt train`: most CPUs would take ten times as long in bfloat16."""
        return "32-true" if self.is_dry else "bf16-mixed"

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Settings:
        return cls(**json.loads(path.read_text()))
