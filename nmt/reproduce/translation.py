"""The stages of a translation model: corpus, training, translation, scores."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open

from nmt.commands.reproduce import ReproduceConfig
from nmt.compose import set_text
from nmt.data.manifest import read_manifest
from nmt.errors import NMTError
from nmt.report.run import last, read_metrics, read_object
from nmt.reproduce.scales import Scale, Training
from nmt.reproduce.stages import Stage
from nmt.reproduce.table import Row


@dataclass(frozen=True)
class Experiment:
    """A model that is trained on a corpus, and scored on a set that is held out."""

    config: ReproduceConfig
    scale: Scale
    name: str
    corpus: str
    """en-de or en-fr."""
    model: tuple[str, ...]
    """The words that choose it."""
    training: Training
    split: str
    """test or valid."""
    metrics: tuple[str, ...]

    @property
    def target(self) -> str:
        return self.corpus.partition("-")[2]

    @property
    def prepared(self) -> Path:
        return Path(self.config.work) / "data" / self.corpus

    @property
    def run(self) -> Path:
        return Path(self.config.work) / "runs" / self.name

    @property
    def translations(self) -> Path:
        return self.run / f"{self.split}.{self.target}"

    @property
    def scores(self) -> Path:
        return self.run / f"{self.split}.scores.json"

    def data(self) -> tuple[str, ...]:
        """The words that `nmt preprocess` and `nmt train` share."""
        local = getattr(self.config, self.scale.local) if self.scale.local else None
        path = [set_text("data.path", local)] if local else []
        prepared = set_text("prepared", str(self.prepared))
        return (*self.scale.corpora[self.corpus], *path, prepared, f"seed={self.config.seed}")

    def row(self) -> Row:
        stages, findings = self.stages(), self.findings
        return Row(self.name, stages, findings, self.corpus, self.training_words())

    def stages(self) -> list[Stage]:
        """From text to scores."""
        return [
            Stage(
                f"preprocess {self.corpus}",
                ("preprocess", *self.data()),
                self.prepared / "manifest.json",
                check=self.check_lines,
            ),
            Stage(f"train {self.name}", ("train", *self.training_words()), self.run / "model"),
            Stage(f"translate {self.name}", self.translation_words(), self.translations),
            Stage(f"score {self.name}", self.score_words(), self.scores, captured=True),
        ]

    def training_words(self) -> tuple[str, ...]:
        """Behind `nmt train`; the model in its own words, and what a smaller scale makes of its sizes."""
        return (
            *self.data(),
            *self.model,
            *self.scale.sizes(self.model),
            *self.scale.words,
            *how_trained(self.config, self.training, self.run),
        )

    def translation_words(self) -> tuple[str, ...]:
        return (
            "translate",
            set_text("run", str(self.run)),
            set_text("input", str(self.prepared / f"{self.split}.en")),
            set_text("output", str(self.translations)),
        )

    def score_words(self) -> tuple[str, ...]:
        return (
            "score",
            set_text("hypothesis", str(self.translations)),
            set_text("reference", str(self.prepared / f"{self.split}.{self.target}")),
            f"metrics=[{','.join(self.metrics)}]",
            f"language={self.target}",
            "format=json",
        )

    def check_lines(self) -> None:
        """NMTError where a held-out set is not the paper's, before days are spent on training."""
        counts = read_manifest(self.prepared).counts
        for split, wanted in (("valid", self.scale.valid_lines), ("test", self.scale.test_lines)):
            found = counts[split]["kept"]
            if wanted is not None and found != wanted:
                raise NMTError(
                    f"{self.prepared}: its {split} set has {found:,} lines, but the paper's has {wanted:,}; "
                    "give the whole corpus with wmt14=FOLDER, and remove that folder"
                )

    def findings(self) -> dict[str, Any]:
        """What a result tells of the experiment, whose stages are done."""
        found = training_findings(self.run)
        lines = self.translations.read_text(encoding="utf-8").count("\n")
        scores = json.loads(self.scores.read_text(encoding="utf-8"))
        return {**found, "scores": scores, "figures": {**found["figures"], "lines": lines}}


def how_trained(config: ReproduceConfig, training: Training, run: Path) -> tuple[str, ...]:
    """The words behind `nmt train` that are alike for whatever is trained."""
    return (
        *training.words,
        f"trainer.max_steps={training.updates}",
        "checkpoints.every_minutes=null",
        f"checkpoints.every_steps={training.checkpoint_every}",
        "validation.bleu_sentences=0",
        f"trainer.devices={config.devices}",
        f"trainer.precision={config.precision}",
        set_text("run", str(run)),
    )


def training_findings(run: Path) -> dict[str, Any]:
    """What a result tells of a training: on what, for how long, at which cost, and how it ended."""
    rows = read_metrics(run)
    seconds, flops, cost = (last(rows, column) for column in ("seconds", "flops", "cost"))
    figures = {
        "updates": int(rows[-1]["step"]),
        "parameters": count_parameters(run / "model"),
        "training_seconds": seconds,
        "training_flops": flops,
        "training_cost": cost,
        "perplexity": last(rows, "valid_perplexity"),
    }
    return {"devices": read_object(run / "environment.json").get("devices"), "figures": figures}


def count_parameters(model: Path) -> int:
    """The numbers in a model directory's weights, a matrix that several layers share once."""
    with safe_open(model / "model.safetensors", framework="numpy") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
