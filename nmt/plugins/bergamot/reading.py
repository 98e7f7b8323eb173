"""Import Firefox's models from untrusted folders:

model.ende.intgemm.alphas.bin   weights and settings
vocab.ende.spm                  vocabulary; or one each, srcvocab.ende.spm and trgvocab.ende.spm
metadata.json                   languages (optional)
"""

import re
from pathlib import Path

from nmt import files
from nmt.config import NMTError
from nmt.plugins.bergamot.container import SCALE, read_container
from nmt.plugins.exchange.imported import ImportedModel
from nmt.plugins.exchange.marian_files import model_of
from nmt.plugins.exchange.marian_hub import language_code
from nmt.plugins.exchange.marian_vocabulary import tokenizer_of

PAIR = re.compile(r"\.([a-z]{2})([a-z]{2})\.")
"""The languages in the name of a file."""


def read_model(path: Path) -> ImportedModel:
    """The model in a .bin, or in a folder with one."""
    folder = path if path.is_dir() else path.parent
    file = path
    if path == folder:
        # A shortlist also ends in .bin.
        models = [model for model in folder.glob("*.bin") if not model.name.startswith("lex.")]
        if len(models) != 1:
            raise NMTError(f"{folder}: has {len(models)} models; pass the .bin of one")
        [file] = models
    # Sorted, "srcvocab" comes before "trgvocab".
    vocabularies = sorted(folder.glob("*.spm"))
    if len(vocabularies) not in (1, 2):
        problem = f"has {len(vocabularies)} vocabularies"
        expected = "expected a .spm, or srcvocab.*.spm and trgvocab.*.spm"
        raise NMTError(f"{folder}: {problem}; {expected}")
    arrays = {}
    for name, array in read_container(file).items():
        # nmt computes in float32, without the factors of activations.
        if not name.endswith(SCALE):
            arrays[name] = array
    # A single vocabulary is first and last.
    tokenizer = tokenizer_of([vocabularies[0], vocabularies[-1]])
    return model_of(file, arrays, tokenizer, 1.0, languages_of(folder, file))


def languages_of(folder: Path, file: Path) -> tuple[str, str]:
    """The codes of the source and target language, from metadata.json or the file's name."""
    description = folder / "metadata.json"
    tree = files.read_mapping(description, files.parse_json) if description.exists() else {}
    # metadata.json comes first: names of files have only codes of two letters.
    source = tree.get("sourceLanguage")
    target = tree.get("targetLanguage")
    pair = PAIR.search(file.name)
    if pair:
        source = source or pair[1]
        target = target or pair[2]
    return language_code(source), language_code(target)
