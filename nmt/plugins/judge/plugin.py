"""Judge translations without references: by flags for likely failures, or with a model."""

from nmt.extensions import Add, OptionsEntry


def register(add: Add) -> None:
    add(OptionsEntry("score.judge", "nmt.plugins.judge.judge:JudgeConfig", is_inline=True))
