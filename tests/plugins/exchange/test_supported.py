"""Tables of what engines and exports support: a key that a table lacks is refused."""

import json
import shutil
from dataclasses import asdict, fields, make_dataclass
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2")

from nmt.config import (
    DecodeConfig,
    ModelConfig,
    NMTError,
    Program,
    TokenizerConfig,
    exported_settings,
)
from nmt.extensions import EngineEntry, ExporterEntry, import_attribute
from nmt.plugins.exchange import ctranslate2_support
from nmt.plugins.exchange.supported import ENGINE
from nmt.registry import entries_of
from nmt.search import EngineOptions
from nmt.translation import with_engine
from tests.helpers.options import translator_options

TABLES = {name: entry.supports for name, entry in entries_of(ExporterEntry).items()}
EXPORTS = {name: import_attribute(path) for name, path in TABLES.items() if path}
PROGRAMS = {**EXPORTS, "engine": ENGINE}
MODEL_KEYS = {f"model.{field.name}" for field in fields(ModelConfig)}
TOKENIZER_KEYS = {f"tokenizer.{field.name}" for field in fields(TokenizerConfig)}
ENGINE_KEYS = {f"decode.{field.name}" for field in fields(DecodeConfig)}
ENGINE_KEYS |= {field.name for field in fields(EngineOptions) if field.name != "decode"}
LINES = ["ka lo mi", "nu pe ri so", "tu va we"] * 20


@pytest.fixture(autouse=True)
def automatic(tmp_path, monkeypatch):
    """`engine=auto` may choose CTranslate2."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 0)
    engines = [entries_of(EngineEntry)[name] for name in ("ctranslate2", "torch")]
    monkeypatch.setattr("nmt.translation.load.automatic_engines", lambda precision: engines)


def usual_settings(name: str, model: ModelConfig | None = None) -> dict:
    usual = {"name": "x", "d_model": 32, "d_ff": 32, "heads": 2}
    if name == "bergamot":
        usual |= {
            "decoder": "ssru",
            "positions": "tensor2tensor",
            "zero_start": True,
            "norm_epsilon": 1e-6,
        }
    tokenizer = asdict(TokenizerConfig("unigram", 300))
    return exported_settings(model or ModelConfig(**usual), tokenizer, "files", [])


@pytest.mark.parametrize("name", PROGRAMS)
def test_table_names_every_key(name):
    others = ENGINE_KEYS if name == "engine" else {*TOKENIZER_KEYS, "data.kind", "data.tag"}
    assert PROGRAMS[name].table.keys() == MODEL_KEYS | others


@pytest.mark.parametrize("name", EXPORTS)
def test_export_refuses_keys_that_its_table_lacks(name):
    program = EXPORTS[name]
    settings = usual_settings(name)
    program.check(settings)
    for key in settings:
        table = {other: rule for other, rule in program.table.items() if other != key}
        with pytest.raises(NMTError, match=rf"^{key}=.*: format={name} lacks this key; "):
            Program(program.name, table, program.advice).check(settings)


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("value", ["usual", "other"])
def test_export_refuses_a_key_that_is_added_to_models(name, value):
    later = make_dataclass("Later", [("gate", str, "usual")], bases=(ModelConfig,))
    model = later(name="x", d_model=32, d_ff=32, heads=2, gate=value)
    problems = EXPORTS[name].problems(usual_settings(name, model))
    [problem] = [problem for problem in problems if problem.key == "model.gate"]
    assert (problem.value, problem.needs) == (value, "")


@pytest.mark.parametrize("key", sorted(MODEL_KEYS | ENGINE_KEYS))
def test_auto_falls_back_to_torch_for_an_unnamed_key(key, checkpoint, monkeypatch):
    table = {other: rule for other, rule in ENGINE.table.items() if other != key}
    notices = []
    monkeypatch.setattr(ctranslate2_support, "ENGINE", Program(ENGINE.name, table, ENGINE.advice))
    assert with_engine(translator_options(checkpoint), notices.append).compute.engine == "torch"
    [notice] = notices
    assert notice.startswith(f"engine=torch ({key}=")
    assert "lacks this key" in notice


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        (
            "huggingface",
            {"model.norm": "middle"},
            "model.norm=middle: format=huggingface needs model.norm=post or pre",
        ),
        ("huggingface", {"model.d_k": 8}, "model.d_k=8: format=huggingface needs model.d_k=16"),
        ("huggingface", {"model.heads": 3}, "a divisor of model.d_model (32) for model.heads"),
        ("huggingface", {"model.positions": "learned"}, "needs model.positions=sinusoidal"),
        (
            "huggingface",
            {"model.padding_probability": False},
            "needs model.padding_probability=true",
        ),
        (
            "huggingface",
            {"model.activation": "gelu2"},
            "needs model.activation=relu or swish or gelu or quick_gelu",
        ),
        (
            "huggingface",
            {"tokenizer.kind": "characters"},
            "tokenizer.kind=characters: format=huggingface needs",
        ),
        ("huggingface", {"tokenizer.normalization": "nfd"}, "tokenizer.normalization=nfd: "),
        (
            "huggingface",
            {"tokenizer.casing": "lower"},
            "tokenizer.casing=lower: format=huggingface lacks this key",
        ),
        (
            "huggingface",
            {"model.embedding_norm": True},
            "model.embedding_norm=true: format=huggingface needs model.embedding_norm=false",
        ),
        (
            "huggingface",
            {"data.kind": "treebank"},
            "data.kind=treebank: format=huggingface needs targets that are text",
        ),
        (
            "ctranslate2",
            {"model.norm": "middle"},
            "model.norm=middle: format=ctranslate2 needs model.norm=post or pre",
        ),
        ("ctranslate2", {"tokenizer.casing": "lower"}, "lacks this key"),
    ],
    ids=str,
)
def test_problems_are_reported_on_one_line(name, changes, problem):
    with pytest.raises(NMTError) as error:
        EXPORTS[name].check(usual_settings(name) | changes)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", EXPORTS)
def test_export_checks_the_stored_settings_of_a_tokenizer(name, checkpoint, tmp_path, nmt):
    model = Path(shutil.copytree(checkpoint, tmp_path / "model"))
    tree = json.loads((model / "config.json").read_text())
    tree["training"]["config"] = {
        "tokenizer": {"kind": "bpe", "casing": "lower"},
        "data": {"kind": "files"},
    }
    (model / "config.json").write_text(json.dumps(tree))
    problem = "tokenizer.casing=lower" if name != "bergamot" else "model.decoder=attention"
    nmt("export", "model", f"format={name}", "output=out").failed(problem, f"format={name}")
    assert not (tmp_path / "out").exists()
