"""Options of the engine and the device that run a model."""

from dataclasses import dataclass

from nmt.config.fields import choice, number, setting
from nmt.errors import SettingError
from nmt.extensions import EngineEntry
from nmt.registry import entries_of


def precisions_of_engines() -> dict[str, tuple[str, ...]]:
    return {engine: entry.precisions for engine, entry in entries_of(EngineEntry).items()}


def all_precisions() -> list[str]:
    """The precisions that at least one engine supports, each of them once."""
    names: dict[str, None] = {}
    for precisions in precisions_of_engines().values():
        names |= dict.fromkeys(precisions)
    return list(names)


@dataclass(frozen=True)
class Compute:
    """The engine, device and precision to run a model with."""

    engine: str = choice("auto", "auto", names_of=lambda: entries_of(EngineEntry))
    """torch (any device), ctranslate2 (fast on CPUs), or auto (ctranslate2 on a CPU if possible,
    otherwise torch)."""
    precision: str = choice("float32", names_of=all_precisions)
    """Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch, on some devices)."""
    threads: int | None = number(None, 1, 4096, affects_output=False)
    """Number of CPU cores to use; null: all."""
    devices: int = number(1, 1, 1024, affects_output=False)
    """torch: number of GPUs to divide the lines among."""
    device: str = setting("auto", affects_output=False)
    """auto, cpu, cuda, cuda:1 or mps."""

    def __post_init__(self) -> None:
        if self.engine != "auto":  # plugins are registered after this class is created
            self.check_precision()
        # With auto, the engine is not chosen yet.
        if self.devices != 1 and self.engine not in ("auto", "torch"):
            raise SettingError(
                "only engine=torch uses several GPUs; for CPU cores, set threads",
                key="devices",
                value=str(self.devices),
            )

    def check_precision(self) -> None:
        """Raise NMTError unless the engine supports the precision."""
        engines = [
            engine for engine, names in precisions_of_engines().items() if self.precision in names
        ]
        if self.engine not in engines:
            raise SettingError(
                f"pass engine={engines[0]}, which supports it",
                key="precision",
                value=self.precision,
            )
