"""Export models to other programs, and import models from them."""

from nmt.extensions import Add, CommandEntry, EngineEntry, ExporterEntry, ModelsEntry, PythonEntry

# Patterns for all files of an export, so that `nmt runs delete` recognizes what nmt has written.
CTRANSLATE2_FILES = (
    r"README\.md",
    r"config\.json",
    r"model\.bin",
    r"(source|target|shared)_vocabulary\.(json|txt)",
    r"tokenizer\.model",
    r"sentencepiece\.(bpe|\d+)\.model",
    r"(source|target)\.spm",
)
HUGGINGFACE_FILES = (
    r"README\.md",
    r"((tokenizer|generation)_)?config\.json",
    r"model\.safetensors",
    r"tokenizer\.json",
    r"vocab\.json",
    r"sentencepiece\.bpe\.model",
    r"(source|target)\.spm",
)


def register(add: Add) -> None:
    here = "nmt.plugins.exchange"
    export = CommandEntry(
        "export",
        f"{here}.exporting:EXPORT",
        summary="Export a model for another program and compare both programs' translations.",
    )
    # `import` is a keyword of Python.
    import_ = CommandEntry(
        "import",
        f"{here}.importing:IMPORT",
        summary="Import an OPUS-MT, NLLB, M2M-100, mBART-50, Marian or Firefox model.",
    )
    publish = "Publish a model on the Hugging Face Hub."
    add(export)
    add(import_)
    add(CommandEntry("push", f"{here}.pushing:PUSH", summary=publish))
    add(ModelsEntry("hub:", f"{here}.hub_models:find_model"))
    add(PythonEntry("export", f"{here}.exporting:export"))
    ctranslate2 = ExporterEntry(
        "ctranslate2",
        f"{here}.ctranslate2_export:export",
        keys=("precision", "sample"),
        precision="float32",
        marker="config.json",
        files="|".join(CTRANSLATE2_FILES),
        supports=f"{here}.supported:CTRANSLATE2",
    )
    huggingface = ExporterEntry(
        "huggingface",
        f"{here}.huggingface:export",
        precision="float32",
        marker="config.json",
        files="|".join(HUGGINGFACE_FILES),
        supports=f"{here}.supported:HUGGINGFACE",
    )
    engine = EngineEntry(
        "ctranslate2",
        f"{here}.ctranslate2_engine:load",
        precisions=("float32", "int8"),
        module="ctranslate2",
        why_not=f"{here}.ctranslate2_support:why_not_automatic",
        weights=f"{here}.ctranslate2_conversion:weights",
    )
    add(ctranslate2)
    add(huggingface)
    add(engine)
