"""One experiment, from text to averaged model: the tree of `nmt preprocess` and `nmt train`."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from nmt.config.corpus import DataConfig, TokenizerConfig
from nmt.config.decoding import DecodeConfig
from nmt.config.model import ModelConfig
from nmt.config.rules import as_list, check_name, check_numbers, number, require, require_choice
from nmt.config.trainer import checked_trainer
from nmt.config.training import BatchingConfig, CheckpointConfig, OptimConfig, ValidationConfig


@dataclass
class ExperimentConfig:
    """The tree of `nmt preprocess` and `nmt train`: one experiment, from text to averaged model."""

    name: str = MISSING
    """Names the run: it is written to runs/NAME."""
    prepared: str = MISSING
    """Folder of the prepared corpus."""
    run: str = MISSING
    """Folder of the training run."""
    seed: int = number(1, 0, 2**63 - 1)
    """Decides splits, samples, initial weights, order and dropout."""
    workers: int = number(2, 1, 1000)
    """Processes that preprocess uses."""
    logger: Any = field(default_factory=lambda: ["tensorboard"])
    """Where curves go beside metrics.csv: csv (nowhere else), tensorboard, wandb, or a list of them."""
    overwrite: bool = False
    """preprocess: replace a corpus that was prepared otherwise."""
    num_workers: int | None = number(None, 0, 1024)
    """train: processes beside each device that put batches together; null: 2 for an accelerator, 0 for a processor."""
    float32_matmul_precision: str = "highest"
    """train: how exactly float32 is multiplied, as torch calls it: highest, high (TF32 on a GPU), medium (bfloat16)."""
    data: DataConfig = MISSING
    tokenizer: TokenizerConfig = MISSING
    model: ModelConfig = MISSING
    optim: OptimConfig = MISSING
    batching: BatchingConfig = MISSING
    checkpoints: CheckpointConfig = MISSING
    validation: ValidationConfig = MISSING
    decode: DecodeConfig = MISSING
    trainer: dict[str, Any] = MISSING
    experiment: Any = None

    def __post_init__(self) -> None:
        check_numbers(self)
        self.logger = as_list(self.logger)
        for name in self.logger:
            require_choice("logger", name, ("csv", "tensorboard", "wandb"))
        check_name("name", self.name, folders=True)
        for key in ("prepared", "run"):
            require(bool(getattr(self, key).strip()), f"{key}: is empty; name a folder")
        if self.trainer != MISSING:
            self.trainer = checked_trainer(self.trainer)
        require_choice("float32_matmul_precision", self.float32_matmul_precision, ("highest", "high", "medium"))
