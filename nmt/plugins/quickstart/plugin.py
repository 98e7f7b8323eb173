"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("corpus", "quickstart", "nmt.plugins.quickstart.corpus:Quickstart")
    add("options", "data.quickstart", "nmt.plugins.quickstart.config:PackageConfig", inline=True)
