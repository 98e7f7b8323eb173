"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("options", "data.noise", "nmt.plugins.augment.config:NoiseConfig")
    add("transform", "noise", "nmt.plugins.augment.noisy:transform")
