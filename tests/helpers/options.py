"""Options of translations, from the keys that users have."""

from dataclasses import replace
from typing import Any

from nmt.config import TranslateConfig, TranslatorOptions, build


def translate_config(run: Any = "runs/latest", **keys: Any) -> TranslateConfig:
    return build(TranslateConfig, {"run": run, **keys})


def translator_options(
    run: Any = "runs/latest", results: str = "scores", **keys: Any
) -> TranslatorOptions:
    return replace(build(TranslatorOptions, {"run": run, **keys}), results=results)
