"""The options of `cluster=ray`."""

from dataclasses import dataclass, fields

from nmt.config import ClusterOptions, SettingError, number, setting

NAME = "ray"


@dataclass
class RayConfig:
    """Options of jobs on a Ray cluster."""

    # A finished job has the same output with any of these values, so none of them is compared when
    # a plain job resumes. This plugin compares `lines` and `field` itself.
    workers: int | None = number(None, 1, 100_000, affects_output=False)
    """Processes that compute, each with a copy of the model; null: as many as fit the cluster,
    also while it grows or shrinks."""
    cpus: int = number(1, 1, 4096, affects_output=False)
    """CPU cores of each worker, which are also its threads."""
    gpus: int = number(0, 0, 1, affects_output=False)
    """1: each worker has a separate GPU."""
    lines: int = number(2000, 1, 1_000_000, affects_output=False)
    """Lines or records of a block; workers compute blocks, and a resumed job keeps the finished
    ones."""
    field: str = setting("text", affects_output=False)
    """translate: field of JSONL files, or column of Parquet files, to translate."""
    losses: int = number(10, 1, 1000, affects_output=False)
    """How often one block may lose its worker before nmt stops."""
    address: str | None = setting(None, affects_output=False)
    """Address of the cluster, such as HOST:6379 or ray://HOST:10001; null: $RAY_ADDRESS, or the
    cluster that you have started here with `ray start`, otherwise a new one on this machine's
    cores; local: always a new one."""

    def check(self, options: ClusterOptions) -> None:
        """Raise SettingError if an option of the cluster is given without it."""
        if options.cluster == NAME:
            return
        for item in fields(self):
            value = getattr(self, item.name)
            if value != item.default:
                key = f"{NAME}.{item.name}"
                raise SettingError(f"needs cluster={NAME}", key=key, value=str(value))
