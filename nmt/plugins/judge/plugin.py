"""`nmt score` without references: flags for likely failures, and log probability under a model."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("options", "score.judge", "nmt.plugins.judge.judge:JudgeConfig", inline=True)
