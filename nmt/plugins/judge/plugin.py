"""Judge translations without references: by flags for likely failures, or with a model."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("flags", "failures", "nmt.plugins.judge.flags:flags")
    add("options", "score.judge", "nmt.plugins.judge.judge:JudgeConfig", inline=True)
