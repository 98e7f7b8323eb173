"""The code in an exported README translates as `nmt translate` does, in a process without nmt."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2")

from nmt.config import ModelConfig, TokenizerConfig
from nmt.model import Transformer
from nmt.text import train_tokenizer
from tests.conftest import import_fixture, save_model
from tests.plugins.exchange.test_ctranslate2 import learn_to_reverse, random_text

EXAMPLE = '"A line."'
LINES = [
    *random_text(25),
    random_text(1)[0] * 150,
    "",
    "  ba\u00a0dem\t ki ",
    "\ufb01ba \uff21\uff42 ki\u00adlo schi\u0301",
    "ba \u2581 dem \ue000 ki \ue0001",
    "schie\u00dfe <unk> </s> <0x41>",
]
"""Usual, long, empty and unusual lines."""
DRIVER = """
import contextlib, io, json, sys

import ctranslate2

class Importer:
    def find_spec(self, name, *rest):
        assert name.partition(".")[0] not in ("nmt", "torch"), name

sys.meta_path.insert(0, Importer())
code, lines = json.load(sys.stdin)
model = ctranslate2.Translator(".")
ctranslate2.Translator = lambda path: model  # load it once
results = []
for line in lines:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(code.replace('"A line."', repr(line)), {})
    results.append(shown.getvalue().removesuffix("\\n"))
json.dump(results, sys.stdout)
"""
KINDS = {
    "bpe": (TokenizerConfig("bpe", 320), {}),
    "unigram": (
        TokenizerConfig("unigram", 320, normalization="nfkc"),
        {"norm": "pre", "activation": "gelu"},
    ),
    "tags": (
        TokenizerConfig("bpe", 320, normalization="none"),
        {"zero_start": True, "positions": "tensor2tensor"},
    ),
    "learned": (TokenizerConfig("bpe", 320), {"positions": "learned", "max_positions": 700}),
}


def by_readme(export: Path, lines: list[str]) -> list[str]:
    """Translations by the code in the README."""
    [code] = re.findall(r"```python\n(.*?)```", (export / "README.md").read_text(), flags=re.S)
    assert EXAMPLE in code
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=export,
        input=json.dumps([code, lines]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


TAGGED = {
    "tags": ["<2fr> ba dem", " <2de>ki lo"],
    "imported tagged": [">>fra<< ka lo", ">>deu<<mi nu"],
}


@pytest.fixture(params=[*KINDS, "imported tied", "imported tagged"])
def model(request, tmp_path) -> tuple[Path, list[str]]:
    """A model directory, and lines with tags if the model has any."""
    lines = TAGGED.get(request.param, [])
    if request.param.startswith("imported"):
        return import_fixture(request.param.split()[1], tmp_path / "model"), lines
    vocabulary, settings = KINDS[request.param]
    tags = ["<2de>", "<2fr>"] if lines else []
    tokenizer = train_tokenizer([*random_text(60), *map(str, range(1, 99))], vocabulary, tags=tags)
    shape = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 32,
        "d_ff": 48,
        "heads": 4,
        "dropout": 0.0,
    }
    config = ModelConfig(name="x", **{**shape, **settings})
    network = Transformer(config, tokenizer.vocabulary_size)
    if "max_positions" not in settings:
        learn_to_reverse(network)
    return save_model(tmp_path / "model", network, tokenizer), lines


@pytest.mark.slow
def test_code_in_readme_translates_as_nmt(model, nmt, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines = [*LINES, *model[1]]
    (tmp_path / "sample").write_text("".join(f"{line}\n" for line in lines))
    done = nmt("export", "model", "output=out", "sample=sample")
    assert done.code == 0, done.err
    words = ["translate", "run=model", "split=never", "protect=none", "input=sample"]
    expected = nmt(*words, "engine=ctranslate2")
    assert expected.code == 0, expected.err
    translations = by_readme(tmp_path / "out", lines)
    assert translations == expected.out.split("\n")[:-1]
    # The README reports how many translations of its own code are those of torch.
    original = nmt(*words, "engine=torch")
    same = sum(map(str.__eq__, translations, original.out.split("\n")[:-1]))
    claim = f"the same translation for {same} of {len(lines)} lines"
    assert claim in (tmp_path / "out/README.md").read_text()
