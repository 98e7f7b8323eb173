"""Exports of models whose vocabulary `nmt extend` has extended."""

import re
import shutil
from pathlib import Path

import pytest

from nmt.plugins.exchange.multilingual_usage import translate_lines
from nmt.text import MultilingualTokenizer, read_tokenizer
from tests.helpers.multilingual import PAIRS, STEPS, change, lines_in_many_scripts, write_folder
from tests.plugins.extend.test_extend import tuvan

# Its models take seconds to write.
pytestmark = pytest.mark.slow

transformers = pytest.importorskip("transformers")

LIKE = {"nllb": "kaz_Cyrl", "m2m": "kk", "mbart": "kk_KZ"}
NEW = {"nllb": "tyv_Cyrl", "m2m": "tyv", "mbart": "tyv"}


@pytest.fixture(scope="module", params=LIKE)
def extended(request, tmp_path_factory) -> tuple[str, Path]:
    """The kind of a model, and the model with Tuvan, as if the new entries had been trained."""
    from nmt.config import build
    from nmt.plugins.exchange.importing import ImportConfig, run_import
    from nmt.plugins.extend.command import ExtendConfig, run_extend

    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    write_folder(folder / "hub", kind, steps=STEPS)
    run_import(ImportConfig(path=str(folder / "hub"), output=str(folder / "old"), verify=False))
    (folder / "corpus").write_text("\n".join(tuvan(600)))
    options = {
        "run": str(folder / "old"),
        "output": str(folder / "new"),
        "languages": [NEW[kind]],
        "like": [LIKE[kind]],
        "text": [str(folder / "corpus")],
        "subwords": 40,
    }
    run_extend(build(ExtendConfig, options))
    model = read_json_model(folder / "new")
    change(folder / "new/config.json", model={**model, "untrained": 0})
    return kind, folder / "new"


def read_json_model(folder: Path) -> dict[str, object]:
    from nmt.files import read_description

    return dict(read_description(folder).model)


def tagged_lines(kind: str) -> list[str]:
    """Lines from and into the new language, and between old ones."""
    source, target = PAIRS[kind]
    new = NEW[kind]
    # mBART's table of positions is short.
    old_lines = [line for line in lines_in_many_scripts(90, seed=3) if len(line) < 25]
    lines = [f"<{new}2{target}> {line}" for line in tuvan(20, seed=6)]
    lines += [f"<{source}2{new}> {line}" for line in old_lines[:20]]
    lines += [f"<{source}2{target}> {line}" for line in old_lines[20:40]]
    return lines


def test_ctranslate2_encodes_each_language_as_nmt(extended, nmt, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kind, model = extended
    lines = tagged_lines(kind)
    (tmp_path / "sample").write_text("\n".join(lines) + "\n")
    done = nmt("export", str(model), "output=out", "sample=sample")
    assert done.code == 0, done.err
    assert "the same translation for" in done.out
    [code] = re.findall(r"```python\n(.*?)```", Path("out/README.md").read_text(), flags=re.S)
    results = translate_lines(Path("out"), code, read_tokenizer(model), lines)
    # Not torch, which may find another hypothesis of a model that is uncertain.
    search = ("split=never", "protect=none", "engine=ctranslate2")
    done = nmt("translate", str(model), *search, "input=sample")
    assert results == done.out.split("\n")[:-1]


def test_transformers_encodes_the_new_language_as_nmt(extended, nmt, tmp_path):
    kind, model = extended
    if kind != "nllb":
        done = nmt("export", str(model), "output=out", "format=huggingface")
        assert done.code == 2
        assert "has a fixed list of languages" in done.err
        return
    assert nmt("export", str(model), "output=out", "format=huggingface").code == 0
    theirs = transformers.AutoTokenizer.from_pretrained("out", src_lang=NEW[kind])
    ours = read_tokenizer(model)
    assert isinstance(ours, MultilingualTokenizer)
    _, target = PAIRS[kind]
    for line in tuvan(50, seed=7):
        tokens = theirs.convert_ids_to_tokens(theirs(line).input_ids)
        [ids] = ours.encode([f"<{NEW[kind]}2{target}> {line}"])
        assert tokens == [ours.symbol(id) for id in ids] + ["</s>"]
    text = Path("out/README.md").read_text()
    assert "older languages" in " ".join(text.split())
    # Both programs read the same bytes: nmt imports its own export.
    assert nmt("import", "out", "output=again", "verify=false").code == 0
    weights = [Path(folder, "model.safetensors").read_bytes() for folder in (model, "again")]
    assert weights[0] == weights[1]


def test_untrained_entries_cannot_be_exported(extended, nmt, tmp_path):
    _, model = extended
    shutil.copytree(model, "untrained")
    change(Path("untrained/config.json"), model={**read_json_model(model), "untrained": 9})
    done = nmt("export", "untrained", "output=out")
    assert done.code == 2
    assert "training with the entries that `nmt extend` added" in done.err
