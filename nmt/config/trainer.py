"""The flags of lightning.Trainer: those that `trainer:` takes, with their values, and why it does not take the others.

A training run is a function of configuration, seed and step. Every flag of Trainer stands in one of the two lists, so
that a new one is a decision; Lightning itself is not needed to read them.
"""

import re
from collections.abc import Callable
from typing import Any

from nmt.config.rules import check_number, require, shown
from nmt.errors import NMTError

Check = Callable[[str, Any], Any]
"""From a key and its value to the value that Lightning is given; NMTError where it is none."""


def within(least: float, most: float, otherwise: str = "") -> Check:
    """A number from `least` to `most`; `otherwise` ends the message where it is none."""

    def check(key: str, value: Any) -> Any:
        check_number(key, value, (least, most), otherwise)
        return value

    return check


def one_of(*choices: Any) -> Check:
    """One of some texts, or of true and false."""

    def check(key: str, value: Any) -> Any:
        known = any(type(value) is type(choice) and value == choice for choice in choices)
        words = ", ".join(str(choice).lower() for choice in choices)
        require(known, f"{key}={shown(value)}: must be one of {words}, or null")
        return value

    return check


def check_devices(key: str, value: Any) -> Any:
    """auto, a number of devices, -1 for all, or a list of their numbers."""
    numbers = value if isinstance(value, list) else []
    listed = bool(numbers) and all(type(number) is int and 0 <= number < 1024 for number in numbers)
    counted = type(value) is int and (value == -1 or 1 <= value <= 1024)
    require(
        value == "auto" or counted or (listed and len(set(numbers)) == len(numbers)),
        f"{key}={shown(value)}: must be auto, how many from 1 to 1,024, -1 for all, or a list of which, as [0,1]",
    )
    return value


PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")
SHORT_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}


def whole_precision(key: str, value: Any) -> str:
    """One of Lightning's precisions by its whole name: 16 is 16-mixed."""
    name = SHORT_PRECISIONS.get(str(value), value)
    require(name in PRECISIONS, f"{key}={shown(value)}: must be one of {', '.join(PRECISIONS)}")
    return str(name)


def duration(key: str, value: Any) -> str:
    """15m, 2h, 1d12h or DD:HH:MM:SS, as DD:HH:MM:SS."""
    text, number = str(value), "([0-9]{1,6})"
    found = re.fullmatch(f"{number}:{number}:{number}:{number}", text) or re.fullmatch(
        "".join(f"(?:{number}{unit})?" for unit in "dhms"), text
    )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    require(total > 0, f"{key}={shown(value)}: must be a time, as 15m, 2h, 1d12h, or '00:02:30:00' for 2.5 hours")
    minutes, seconds = divmod(total, 60)
    return f"{minutes // 1440:02}:{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}"


OFFERED: dict[str, tuple[Any, Check]] = {
    "max_steps": (None, within(1, 10**9)),
    "max_time": (None, duration),
    "accelerator": ("auto", one_of("auto", "cpu", "gpu", "cuda", "mps")),
    "devices": ("auto", check_devices),
    "num_nodes": (1, within(1, 10_000)),
    "strategy": ("auto", one_of("auto", "ddp", "fsdp")),
    "precision": ("32-true", whole_precision),
    "log_every_n_steps": (50, within(1, 10**9)),
    "deterministic": (None, one_of(True, False, "warn")),
    "benchmark": (None, one_of(True, False)),
    "gradient_clip_val": (None, within(1e-6, 1e6, ", or null")),
    "gradient_clip_algorithm": (None, one_of("norm", "value")),
    "detect_anomaly": (None, one_of(True, False)),
    "enable_model_summary": (None, one_of(True, False)),
}
"""Flag -> what null stands for, and its check."""

UPDATES = "configuration, seed and step alone decide what an update is made of; a smaller corpus is prepared as one"
EPOCHS = "training is an endless stream of updates without epochs; trainer.max_steps says how many are made"
VALIDATIONS = (
    "validation.every_steps says when, and the whole set is taken; of it validation.bleu_sentences are translated"
)
NOT_USED = "nmt train neither tests nor predicts by Lightning; see nmt translate and nmt score"
CLASSES = "it takes objects of classes, and a configuration can call nothing"

REFUSED = {
    "limit_train_batches": UPDATES,
    "overfit_batches": UPDATES,
    "accumulate_grad_batches": "batching.micro_batches says of how many pieces an update is, on any number of devices",
    "use_distributed_sampler": "each device gets its own pieces of an update already",
    "fast_dev_run": "trainer.max_steps=3 is a short run",
    "min_steps": EPOCHS,
    "max_epochs": EPOCHS,
    "min_epochs": EPOCHS,
    "reload_dataloaders_every_n_epochs": EPOCHS,
    "val_check_interval": VALIDATIONS,
    "check_val_every_n_epoch": VALIDATIONS,
    "limit_val_batches": VALIDATIONS,
    "num_sanity_val_steps": VALIDATIONS,
    "inference_mode": "validation never keeps gradients",
    "limit_test_batches": NOT_USED,
    "limit_predict_batches": NOT_USED,
    "barebones": "it leaves out what saves, reports and validates",
    "callbacks": CLASSES,
    "plugins": CLASSES,
    "logger": "logger=csv, tensorboard or wandb says where curves go",
    "profiler": "its tables are of Lightning's own hooks; python -m cProfile -o FILE -m nmt train ... times everything",
    "default_root_dir": "run=FOLDER says where everything is written",
    "enable_checkpointing": "checkpoints.* says when training is saved",
    "enable_progress_bar": "the progress line is nmt's own, and silent where standard error is no terminal",
    "enable_autolog_hparams": "config.yaml in the run has the configuration",
    "model_registry": "models are folders; nothing is uploaded",
    "sync_batchnorm": "the Transformer normalises each position by itself, not batches",
}
"""Flag -> why not."""


def check_flag(flag: str) -> None:
    """NMTError where a flag is one that a run cannot be given."""
    require(flag not in REFUSED, f"trainer.{flag} cannot be set: {REFUSED.get(flag)}")


def checked_trainer(flags: dict[str, Any]) -> dict[str, Any]:
    """All flags that are offered, null replaced by what it stands for; NMTError for any other, or a wrong value."""
    for flag, value in flags.items():
        if value is not None:
            check_flag(flag)
            if flag not in OFFERED:
                raise NMTError(f"trainer.{shown(flag)}: no such flag; there are {', '.join(OFFERED)}")
    require(flags.get("max_steps") is not None, "trainer.max_steps: a number of updates is needed, as 100000")
    given = {flag: value for flag, value in flags.items() if value is not None}
    checked = {
        flag: check(f"trainer.{flag}", given[flag]) if flag in given else default
        for flag, (default, check) in OFFERED.items()
    }
    check_precision(checked["precision"], on_processor=checked["accelerator"] == "cpu")
    return checked


def check_precision(precision: str, on_processor: bool) -> None:
    """NMTError for 16-mixed on a processor, where Lightning would compute in bfloat16 without a word."""
    require(
        not (on_processor and precision == "16-mixed"),
        "trainer.precision=16-mixed: it needs a GPU; on a processor pass trainer.precision=bf16-mixed",
    )
