"""The flags of lightning.Trainer that `trainer:` takes; foreign_words.tsv has the reasons for refusing the others."""

import re
from dataclasses import dataclass
from typing import Any

from nmt.config.fields import choice, in_words, number, require, shown
from nmt.errors import NMTError

PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")
SHORT_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}


def duration(key: str, value: Any) -> str:
    """Convert 15m, 2h, 1d12h or DD:HH:MM:SS to DD:HH:MM:SS."""
    text, digits = str(value), "([0-9]{1,6})"
    match = re.fullmatch(f"{digits}:{digits}:{digits}:{digits}", text) or re.fullmatch(
        "".join(f"(?:{digits}{unit})?" for unit in "dhms"), text
    )
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0, 0)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    require(total > 0, f"{key}={shown(value)}: must be a time, as 15m, 2h, 1d12h, or '00:02:30:00' for 2.5 hours")
    minutes, seconds = divmod(total, 60)
    return f"{minutes // 1440:02}:{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}"


@dataclass
class TrainerConfig:
    """Flags of lightning.Trainer: updates, devices, precision."""

    max_steps: int | None = number(100_000, 1, 10**9)
    """Total number of updates; a higher number extends a finished run. null: as many as fit in `max_time`, by the speed
    measured as the run begins."""
    max_time: str | None = None
    """Time limit, such as 15m, 2h or 1d12h, after which training saves; the same command resumes. null: no limit.
    Where the learning rate ends with the last update (optim.schedule=linear or cosine), `max_time` without `max_steps`
    also sets `max_steps`."""
    accelerator: str = choice("auto", "auto", "cpu", "gpu", "cuda", "mps")
    """auto, cpu, gpu, cuda or mps; auto takes a GPU where there is one."""
    devices: int | list[int] | str = number("auto", -1, 1024, "auto")
    """Number of GPUs, or of processes on a processor; -1 for all, or a list of device numbers. It must divide
    batching.micro_batches."""
    num_nodes: int = number(1, 1, 10_000)
    """Machines that train together, each with `devices` devices."""
    strategy: str = choice("auto", "auto", "ddp", "fsdp")
    """auto, ddp (a whole model on each device) or fsdp (a model sharded over the devices, where it is too large)."""
    precision: str = choice("32-true", *PRECISIONS, "auto", *SHORT_PRECISIONS)
    """32-true, bf16-mixed (fast on GPUs, less memory), 16-mixed (older GPUs), bf16-true, 16-true, 64-true, or auto:
    bf16-mixed where it is faster than 32-true, measured as a run begins."""
    log_every_n_steps: int = number(50, 1, 10**9)
    """Updates between two rows of metrics.csv, and two reports."""
    deterministic: bool | str | None = choice(None, "warn")
    """true: only deterministic operations, which are slower on GPUs; warn: warn of other operations."""
    benchmark: bool | None = None
    """true: let cuDNN search for its fastest algorithm."""
    gradient_clip_val: float | None = number(None, 1e-6, 1e6)
    """Clip gradients at this norm, or value; null: no clipping, as in the paper."""
    gradient_clip_algorithm: str | None = choice(None, "norm", "value")
    """norm (also null) or value."""
    detect_anomaly: bool | None = None
    """true: name the operation whose gradient is NaN; slow, for debugging."""
    enable_model_summary: bool | None = None
    """true: print a table of the model's layers and parameters."""

    def __post_init__(self) -> None:
        require(
            self.max_steps is not None or self.max_time is not None,
            "trainer.max_steps: a number of updates is needed, or trainer.max_time",
        )
        listed = self.devices if isinstance(self.devices, list) else [0]
        require(
            self.devices != 0 and len(set(listed)) == len(listed) > 0 and min(listed) >= 0,
            f"trainer.devices={in_words(self.devices)}: must be a number, -1 for all devices, or a list such as [0,1]",
        )
        self.precision = SHORT_PRECISIONS.get(self.precision, self.precision)
        self.max_time = None if self.max_time is None else duration("trainer.max_time", self.max_time)
        check_precision(self.precision, on_processor=self.accelerator == "cpu")


def check_precision(precision: str, on_processor: bool) -> None:
    """NMTError for 16-mixed on a processor, where Lightning would silently compute in bfloat16."""
    if on_processor and precision == "16-mixed":
        raise NMTError("trainer.precision=16-mixed: it needs a GPU; on a processor leave it out: float32 is fast there")
