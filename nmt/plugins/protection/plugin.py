"""Placeholders and the like arrive as they are; translations have the terms of a glossary."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    cut = "were cut at what is protected and did not arrive otherwise, and translated in parts"
    lost = "do not hold exactly once what is protected: look at these (format=jsonl has them flagged)"
    missed = "lack a translation that the glossary gives (format=jsonl names it)"
    path = "nmt.plugins.protection"
    add("stage", "protected", f"{path}.protection:protection", order=20, summaries={"cut": cut, "protected": lost})
    terms = {"key": ("protection", "glossary"), "constrains": True, "summaries": {"terms": missed}}
    add("stage", "terms", f"{path}.terms:terms", order=30, **terms)
    add("options", "translator.protection", f"{path}.config:ProtectionConfig", inline=True)
