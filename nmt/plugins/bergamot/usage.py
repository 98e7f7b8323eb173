"""The README of an export for Firefox's engine, and the comparison of its code with nmt."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt import evaluation, translation
from nmt.config import Compute, DecodeConfig, TranslatorOptions
from nmt.files import ModelDescription
from nmt.plugins.exchange.exporting import Sample
from nmt.plugins.exchange.usage import run_code

SHOWN_LINES = 2
"""Number of differing translations to print."""
GREEDY = DecodeConfig(beam_size=1)
ABOUT = """
Firefox's engine translates with the files in this folder. translateLocally also reads
`config.intgemm8bitalpha.yml`: pack the folder as a .tar.gz and import it. `translator.html`, if it
is here, is a page that translates offline; it contains the engine
([Bergamot](https://github.com/browsermt/bergamot-translator), Mozilla Public License 2.0).
"""
USAGE = """
From Python, with `pip install fxtranslate`:

```python
{code}```

`translate` works like `nmt translate split=never protect=none engine=torch decode.beam_size=1`,
except that the engine rounds to int8 and considers only the subwords of the shortlist. nmt also
copies lines without letters, and characters that the training data lacks. By default,
`nmt translate` uses a beam, splits lines into sentences, and protects items such as URLs.
"""
SPELLED = '''
def spelled(text):
    """Replace bytes, which the engine writes as <0x5B>, by their characters."""

    def characters(match):
        return bytes.fromhex(re.sub("<0x|>", "", match[0])).decode(errors="replace")

    return re.sub("(?:<0x[0-9A-F]{2}>)+", characters, text)
'''
CODE = """import re
from pathlib import Path

import fxtranslate

NAMES = {names}
model, shortlist, source, target = (Path(name).read_bytes() for name in NAMES)
ENGINE = fxtranslate.Translator(model, source, target, shortlist)

{spelled}

def translate(line):
    return spelled(ENGINE.translate(line)) if line.strip() else ""


print(translate("A line."))
"""


def code_for(names: Sequence[str]) -> str:
    """The code for these files: the model, the shortlist, and one vocabulary or two."""
    model, shortlist, *vocabularies = names
    # fxtranslate needs two vocabularies, which may be the same.
    four_names = [model, shortlist, vocabularies[0], vocabularies[-1]]
    return CODE.format(names=four_names, spelled=SPELLED)


def compare(
    folder: Path,
    description: ModelDescription,
    files: dict[str, bytes],
    code: str,
    sample: Sample,
) -> list[str]:
    """Translate the sample with the code and, greedily, with nmt; report where they agree."""
    if importlib.util.find_spec("fxtranslate") is None:
        return ["not compared with Firefox's engine: pip install fxtranslate"]
    lines = sample.lines
    # The exported folder does not exist yet, because its README quotes this comparison.
    with TemporaryDirectory() as export:
        for name, content in files.items():
            (Path(export) / name).write_bytes(content)
        theirs = run_code(Path(export), code, "translate(line)", lines)
    ours = greedy_translations(folder, lines)
    different = [number for number, text in enumerate(ours) if text != theirs[number]]
    count = len(lines)
    same = count - len(different)
    share = f"{same:,} of {count:,} greedy translations are identical ({same / count:.1%})"
    notes = [f"{share}: {sample.origin}"]
    if sample.references:
        [bleu] = evaluation.score(theirs, sample.references, ["bleu"], description.target)
        [greedy] = evaluation.score(ours, sample.references, ["bleu"], description.target)
        notes.append(f"BLEU {bleu.value:.2f} (nmt: {greedy.value:.2f}) `{bleu.signature}`")
    for number in different[:SHOWN_LINES]:
        notes.append(f"line {number + 1}: {lines[number]}")
        notes.append(f"  Firefox: {theirs[number]}")
        notes.append(f"  nmt:     {ours[number]}")
    return notes


def greedy_translations(folder: Path, lines: list[str]) -> list[str]:
    """nmt's translations of whole lines."""
    options = TranslatorOptions(
        [str(folder)],
        Compute("torch", device="cpu"),
        # The code translates whole lines, too.
        split="never",
        decode=GREEDY,
    )
    translator = translation.load_translator(options, lambda words: None)
    return [hypotheses[0].text for hypotheses in translator.translate(lines)]
