"""The model that a run starts from, `init=`. Does not import torch."""

from pathlib import Path

from nmt import files
from nmt.config import NMTError
from nmt.data import Manifest


def initial_directory(init: str, prepared: Path, manifest: Manifest) -> Path:
    """The model directory of `init`; NMTError if the corpus in `prepared` has other subwords."""
    folder = files.find_model_directory(init, "init")
    if files.read_description(folder).tokenizer != manifest.tokenizer:
        raise NMTError(
            f"init={init} has a different vocabulary than {prepared}: "
            f"prepare the corpus with it: nmt preprocess init={init}"
        )
    return folder
