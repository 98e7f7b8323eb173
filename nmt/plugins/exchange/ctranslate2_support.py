"""Whether CTranslate2 can run a model with the options of a search."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from nmt.config import ModelConfig, NMTError, settings_of
from nmt.files import cache_folder, is_parser, read_description
from nmt.plugins.exchange.supported import ENGINE
from nmt.search import EngineOptions


def check(folders: Sequence[Path], options: EngineOptions) -> None:
    """Raise NMTError for options that CTranslate2 lacks, or with which torch translates better."""
    if len(folders) != 1:
        problem = f"engine=ctranslate2: {len(folders)} models, but no support for ensembles"
        raise NMTError(f"{problem}; {ENGINE.advice}")
    # All options, including those of later versions: an option that is not in the table is refused.
    settings = settings_of("decode", options.decode)
    for field in fields(options):
        if field.name != "decode":
            settings[field.name] = getattr(options, field.name)
    ENGINE.check(settings)


def check_model(model: ModelConfig) -> None:
    """Raise NMTError for a model that CTranslate2 cannot run."""
    ENGINE.check(settings_of("model", model))


def why_not_automatic(folders: Sequence[Path], options: EngineOptions) -> str:
    """Why `engine=auto` does not choose CTranslate2; empty if it does."""
    import ctranslate2

    # CTranslate2's engine is for CPUs; torch uses the GPU.
    if options.device == "auto" and ctranslate2.get_cuda_device_count():
        return "there is a GPU"
    try:
        check(folders, options)
        description = read_description(folders[0])
        if is_parser(description):
            return "the model is a parser"
        check_model(ModelConfig(**description.model))
        # Tried now, so that engine=auto chooses torch if no conversion could be stored.
        cache_folder().mkdir(parents=True, exist_ok=True)
    except NMTError as error:
        return str(error).partition("; use ")[0]  # omit the advice, which nmt follows anyway
    except OSError as error:
        return f"cannot write to the cache, {error.filename}"
    return ""
