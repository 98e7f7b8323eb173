"""The flags of lightning.Trainer that `trainer:` takes, with their values, and the reasons for refusing the others.

A training run is a function of configuration, seed and step, which some flags would break. Every flag of Trainer is
either a field of TrainerConfig or in REFUSED, so a test fails when Lightning adds one. Nothing here imports Lightning.
"""

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from nmt.config.rules import check_numbers, number, require, shown
from nmt.errors import NMTError

PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")
SHORT_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}


def whole_precision(key: str, value: Any) -> str:
    """The full name of one of Lightning's precisions, or auto: bf16 is bf16-mixed."""
    name = SHORT_PRECISIONS.get(str(value), value)
    require(name in (*PRECISIONS, "auto"), f"{key}={shown(value)}: must be auto, or one of {', '.join(PRECISIONS)}")
    return str(name)


def duration(key: str, value: Any) -> str:
    """Convert 15m, 2h, 1d12h or DD:HH:MM:SS to DD:HH:MM:SS."""
    text, digits = str(value), "([0-9]{1,6})"
    found = re.fullmatch(f"{digits}:{digits}:{digits}:{digits}", text) or re.fullmatch(
        "".join(f"(?:{digits}{unit})?" for unit in "dhms"), text
    )
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    require(total > 0, f"{key}={shown(value)}: must be a time, as 15m, 2h, 1d12h, or '00:02:30:00' for 2.5 hours")
    minutes, seconds = divmod(total, 60)
    return f"{minutes // 1440:02}:{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}"


def check_devices(key: str, value: Any) -> None:
    """NMTError unless a value is auto, a number of devices, -1 for all, or a list of device numbers."""
    numbers = value if isinstance(value, list) else []
    listed = bool(numbers) and all(type(number) is int and 0 <= number < 1024 for number in numbers)
    counted = type(value) is int and (value == -1 or 1 <= value <= 1024)
    require(
        value == "auto" or counted or (listed and len(set(numbers)) == len(numbers)),
        f"{key}={shown(value)}: must be auto, how many from 1 to 1,024, -1 for all, or a list of which, as [0,1]",
    )


CHOICES: dict[str, tuple[Any, ...]] = {
    "accelerator": ("auto", "cpu", "gpu", "cuda", "mps"),
    "strategy": ("auto", "ddp", "fsdp"),
    "deterministic": (True, False, "warn"),
    "benchmark": (True, False),
    "gradient_clip_algorithm": ("norm", "value"),
    "detect_anomaly": (True, False),
    "enable_model_summary": (True, False),
}
"""Flag -> its values, besides null."""


@dataclass
class TrainerConfig:
    """Flags of lightning.Trainer: updates, devices, precision."""

    max_steps: int | None = number(None, 1, 10**9)
    """Total number of updates; a higher number extends a finished run. null: as many as fit in `max_time`, by the speed
    measured as the run begins."""
    max_time: str | None = None
    """Time limit, such as 15m, 2h or 1d12h, after which training saves; the same command resumes. null: no limit.
    Where the learning rate ends with the last update (optim.schedule=linear or cosine), `max_time` without `max_steps`
    also sets `max_steps`."""
    accelerator: Any = "auto"
    """auto, cpu, gpu, cuda or mps; auto takes a GPU where there is one."""
    devices: Any = "auto"
    """Number of GPUs, or of processes on a processor; -1 for all, or a list of device numbers. It must divide
    batching.micro_batches."""
    num_nodes: int = number(1, 1, 10_000)
    """Machines that train together, each with `devices` devices."""
    strategy: Any = "auto"
    """auto, ddp (a whole model on each device) or fsdp (a model sharded over the devices, where it is too large)."""
    precision: Any = "32-true"
    """32-true, bf16-mixed (fast on GPUs, less memory), 16-mixed (older GPUs), bf16-true, 16-true, 64-true, or auto:
    bf16-mixed where it is faster than 32-true, measured as a run begins."""
    log_every_n_steps: int = number(50, 1, 10**9)
    """Updates between two rows of metrics.csv, and two reports."""
    deterministic: Any = None
    """true: only deterministic operations, which are slower on GPUs; warn: warn of other operations."""
    benchmark: Any = None
    """true: let cuDNN search for its fastest algorithm."""
    gradient_clip_val: float | None = number(None, 1e-6, 1e6)
    """Clip gradients at this norm, or value; null: no clipping, as in the paper."""
    gradient_clip_algorithm: Any = None
    """norm (also null) or value."""
    detect_anomaly: Any = None
    """true: name the operation whose gradient is NaN; slow, for debugging."""
    enable_model_summary: Any = None
    """true: print a table of the model's layers and parameters."""

    def __post_init__(self) -> None:
        for flag, choices in CHOICES.items():
            value = getattr(self, flag)
            known = value is None or any(type(value) is type(choice) and value == choice for choice in choices)
            words = ", ".join(str(choice).lower() for choice in choices)
            require(known, f"trainer.{flag}={shown(value)}: must be one of {words}, or null")
        require(
            self.max_steps is not None or self.max_time is not None,
            "trainer.max_steps: a number of updates is needed, or trainer.max_time",
        )
        check_numbers(self, "trainer.")
        check_devices("trainer.devices", self.devices)
        self.precision = whole_precision("trainer.precision", self.precision)
        self.max_time = None if self.max_time is None else duration("trainer.max_time", self.max_time)
        check_precision(self.precision, on_processor=self.accelerator == "cpu")


UPDATES = "configuration, seed and step alone decide the content of an update; prepare a smaller corpus instead"
EPOCHS = "training is an endless stream of updates without epochs; trainer.max_steps is their number"
VALIDATIONS = "validation.every_steps says when; the loss is of the whole set, BLEU of validation.bleu_sentences"
NOT_USED = "nmt train does not use Lightning for testing or prediction; see nmt translate and nmt score"
CLASSES = "it takes Python objects, and a configuration cannot create any"

REFUSED = {
    "limit_train_batches": UPDATES,
    "overfit_batches": UPDATES,
    "accumulate_grad_batches": "batching.micro_batches says how many make an update, on any number of devices",
    "use_distributed_sampler": "each device gets its own micro-batches of an update already",
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
    "barebones": "it turns off saving, reports and validation",
    "callbacks": CLASSES,
    "plugins": CLASSES,
    "logger": "pass logger=csv, tensorboard or wandb",
    "profiler": "it only times Lightning's hooks; python -m cProfile -o FILE -m nmt train ... times everything",
    "default_root_dir": "run=FOLDER says where everything is written",
    "enable_checkpointing": "checkpoints.* says when training is saved",
    "enable_progress_bar": "nmt has its own progress line, which is silent where standard error is no terminal",
    "enable_autolog_hparams": "config.yaml in the run has the configuration",
    "model_registry": "models are folders; nothing is uploaded",
    "sync_batchnorm": "the Transformer has layer normalisation, not batch normalisation",
}
"""Flag -> the reason for refusing it."""
OFFERED = tuple(each.name for each in fields(TrainerConfig))


def check_flag(flag: str) -> None:
    """NMTError for a flag that is refused."""
    require(flag not in REFUSED, f"trainer.{flag} cannot be set: {REFUSED.get(flag)}")


def checked_trainer(flags: dict[str, Any]) -> dict[str, Any]:
    """All flags, with defaults instead of null; NMTError for any other flag, or a wrong value."""
    given = {flag: value for flag, value in flags.items() if value is not None}
    for flag in given:
        check_flag(flag)
        if flag not in OFFERED:
            raise NMTError(f"trainer.{shown(flag)}: no such flag; there are {', '.join(OFFERED)}")
    return asdict(TrainerConfig(**given))


def check_precision(precision: str, on_processor: bool) -> None:
    """NMTError for 16-mixed on a processor, where Lightning would silently compute in bfloat16."""
    if on_processor and precision == "16-mixed":
        raise NMTError("trainer.precision=16-mixed: it needs a GPU; on a processor leave it out: float32 is fast there")
