"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("options", "translator.protection", "nmt.plugins.protection.config:ProtectionConfig", inline=True)
