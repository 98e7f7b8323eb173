"""Import Firefox's models from untrusted folders: model.ende.intgemm.alphas.bin, vocab.ende.spm, metadata.json.

Models with a vocabulary for each side have srcvocab.ende.spm and trgvocab.ende.spm.
"""

import re
from pathlib import Path

from nmt import files
from nmt.config import LANGUAGE, require
from nmt.plugins.bergamot.container import SCALE, read_container
from nmt.plugins.exchange.marian import MarianModel, model_of, tokenizer_of


def read_model(path: Path) -> MarianModel:
    folder = path if path.is_dir() else path.parent
    models = [file for file in sorted(folder.glob("*.bin")) if not file.name.startswith("lex.")]
    require(
        path != folder or len(models) == 1,
        f"{folder}: has {len(models)} models; pass the .bin of one",
    )
    file = models[0] if path == folder else path
    vocabularies = sorted(folder.glob("*.spm"))
    expected = "expected a .spm, or srcvocab.*.spm and trgvocab.*.spm"
    require(
        len(vocabularies) in (1, 2), f"{folder}: has {len(vocabularies)} vocabularies; {expected}"
    )
    arrays = read_container(file)
    arrays = {name: array for name, array in arrays.items() if not name.endswith(SCALE)}
    tokenizer = tokenizer_of([vocabularies[0], vocabularies[-1]])
    description = folder / "metadata.json"
    tree = files.read_mapping(description, files.parse_json) if description.exists() else {}
    named = re.search(r"\.([a-z]{2})([a-z]{2})\.", file.name)
    codes = [
        tree.get(f"{side}Language") or (named and named[place])
        for place, side in enumerate(("source", "target"), 1)
    ]
    source, target = (
        code if isinstance(code, str) and LANGUAGE.fullmatch(code) else "und" for code in codes
    )
    return model_of(file, arrays, tokenizer, 1.0, (source, target))
