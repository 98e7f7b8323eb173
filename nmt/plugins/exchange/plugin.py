"""Export models to other programs, and import models from them."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    here = "nmt.plugins.exchange"
    summary = "Export a model for another program and compare both programs' translations."
    add("command", "export", f"{here}.commands:EXPORT", summary=summary)
    summary = "Import an OPUS-MT, Marian or Firefox model for translation or further training."
    add("command", "import", f"{here}.commands:IMPORT", summary=summary)
    add("api", "export", f"{here}.commands:export")
    vocabularies = r"tokenizer\.model|(source|target)\.spm"
    add(
        "export",
        "ctranslate2",
        f"{here}.ctranslate2_export:export",
        keys=("precision", "sample"),
        marker="config.json",
        precision="float32",
        supports=f"{here}.supported:CTRANSLATE2",
        files=(
            r"README\.md|config\.json|model\.bin|(source|target|shared)_vocabulary\.(json|txt)"
            rf"|{vocabularies}"
        ),
    )
    add(
        "export",
        "huggingface",
        f"{here}.huggingface:export",
        keys=(),
        marker="config.json",
        precision="float32",
        supports=f"{here}.supported:HUGGINGFACE",
        files=(
            r"README\.md|((tokenizer|generation)_)?config\.json|model\.safetensors|tokenizer\.json"
            r"|vocab\.json|(source|target)\.spm"
        ),
    )
    add(
        "engine",
        "ctranslate2",
        f"{here}.ctranslate2_engine:load",
        precisions=("float32", "int8"),
        module="ctranslate2",
        suits=f"{here}.ctranslate2_support:why_not_automatic",
        weights=f"{here}.ctranslate2_conversion:weights",
    )
