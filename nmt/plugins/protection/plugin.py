"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    cut = "were cut at what is protected and did not arrive otherwise, and translated in parts"
    lost = "do not hold exactly once what is protected: look at these (format=jsonl has them flagged)"
    path = "nmt.plugins.protection.protection:protection"
    add("stage", "protected", path, order=20, summaries={"cut": cut, "protected": lost})
    add("stage", "terms", "nmt.plugins.protection.terms:terms", order=30, constrains=("protection", "glossary"))
    add("options", "translator.protection", "nmt.plugins.protection.config:ProtectionConfig", inline=True)
