"""Options of translation on a Ray cluster."""

from dataclasses import dataclass

from nmt.config import Option, TranslateConfig, number, undecided


@dataclass
class RayConfig:
    """Translation of a corpus on a Ray cluster."""

    enabled: bool = undecided(False)
    """Translate files to a folder of Parquet files on a Ray cluster; --ray is short for it."""
    address: str | None = undecided(None)
    """Address of the cluster for ray.init; null: that of RAY_ADDRESS, else a new cluster on this machine."""
    workers: int | None = number(None, 1, 100_000, decides="nothing")
    """Models that translate in parallel, each on a GPU or a core; null: one for each that the cluster has."""
    lines: int = number(10000, 1, 10**9)
    """Lines in each Parquet file, which is the most that a worker loses when a run is killed."""

    def run_instead(self, config: TranslateConfig) -> None:
        from nmt.commands import talker
        from nmt.plugins.cluster.on_ray import translate_corpus

        translate_corpus(config, talker())


RAY = Option("Short for ray.enabled=true.", override="ray.enabled=true")
