"""`nmt export format=ctranslate2`, the cache of `engine=ctranslate2`, and `engine=auto`."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2")

from nmt.commands import compose
from nmt.config import DecodeConfig, NMTError
from nmt.plugins.exchange.ctranslate2_conversion import weights
from nmt.plugins.exchange.ctranslate2_export import compare_scores, exported_in_nmt, original
from nmt.translation import load_translator, what_affects_output, with_engine
from tests.helpers.options import translator_options

LINES = [f"ka {a} lo {b} mi {a}{b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va", "we")]
GREEDY = DecodeConfig(beam_size=1, max_extra_length=3)


@pytest.fixture(autouse=True)
def torch_by_default(tmp_path, monkeypatch):
    """Let `engine=auto` choose CTranslate2, and convert models in the test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 0)


@pytest.fixture
def model(checkpoint, tmp_path) -> Path:
    return Path(shutil.copytree(checkpoint, tmp_path / "model"))


def describe(model: Path, part: str, **changes) -> None:
    """Change the description of a model directory."""
    tree = json.loads((model / "config.json").read_text())
    tree[part] |= changes
    (model / "config.json").write_text(json.dumps(tree))


def translated(checkpoint: Path, notices: list[str] | None = None, **settings) -> list[str]:
    """Translations of LINES; notices are added to `notices`."""
    if notices is None:
        notices = []
    settings = {"engine": "ctranslate2", "threads": 1, **settings}
    config = translator_options(str(checkpoint), decode=GREEDY, **settings)
    translator = load_translator(config, notices.append)
    return [translations[0].text for translations in translator.translate(LINES)]


def test_export_compares_translations_of_the_sample(model, nmt, tmp_path):
    (tmp_path / "sample").write_text("\n".join(LINES) + "\n")
    first, scores, same = nmt("export", "model", "sample=sample", "output=out").out.splitlines()
    assert first == "out: model with format=ctranslate2 precision=float32"
    assert same == "the same translation for 12 of 12 lines (100.0%): sample"
    pattern = r"log P of (\d+) tokens matches CTranslate2's to within (\S+) per token"
    tokens, largest = re.fullmatch(pattern, scores).groups()
    assert int(tokens) >= len(LINES)
    assert 0 < float(largest) < 1e-4
    assert f"{scores}\n{same}" in (tmp_path / "out" / "README.md").read_text()


def test_export_compares_no_scores_of_a_translation_that_is_too_long(model):
    """torch may translate a line with more tokens than CTranslate2 has positions."""
    ours, theirs = original(model), exported_in_nmt(model, "float32")
    too_long = (LINES[0], "ka " * 2048)
    short = (LINES[1], LINES[2])
    alone = compare_scores(ours, theirs, [short])
    assert compare_scores(ours, theirs, [too_long, short]) == alone
    assert compare_scores(ours, theirs, [too_long]).startswith("log P of 0 tokens")


def describe_corpus(model: Path, prepared: str) -> None:
    """Let a model directory name its prepared corpus."""
    data = {"filters": {"max_tokens": 50}}
    describe(model, "training", config={"prepared": prepared, "data": data})


@pytest.mark.slow
def test_default_sample_is_the_validation_set(toy, model, nmt):
    describe_corpus(model, toy[-1].removeprefix("prepared="))
    line = nmt("export", "model").out.splitlines()[2]
    assert line.startswith("the same translation for 40 of 40 lines (100.0%)")


def test_export_reports_missing_validation_set(model, nmt):
    describe_corpus(model, "nowhere")
    line = nmt("export", "model").out.splitlines()[1]
    assert line.startswith("no sample was compared: nowhere: no prepared corpus")


@pytest.mark.slow
def test_export_replaces_only_earlier_exports(model, nmt, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes").write_text("dear")
    for other in ("model", "other", "other/notes"):
        refused = nmt("export", "model", f"output={other}", "format=huggingface")
        refused.refused("not an earlier export; pass another folder")
    (tmp_path / "other/notes").unlink()  # an empty folder is free
    assert nmt("export", "model", "output=other").code == 0
    for settings in ([], ["precision=int8"], ["format=huggingface"], []):
        assert nmt("export", "model", "output=out", *settings).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"out", "other", "model", "cache"}


@pytest.mark.parametrize("words", [[], ["format=huggingface"]])
def test_nmt_cannot_load_an_export(model, nmt, tmp_path, words):
    assert nmt("export", "model", "output=out", *words).code == 0
    problem = r"config\.json: not an nmt model.*pass the run or its model directory$"
    with pytest.raises(NMTError, match=problem):
        translated(tmp_path / "out")


def test_a_model_directory_is_converted_at_its_first_use(model, tmp_path):
    notices = []
    before = sorted(model.iterdir())
    cache = tmp_path / "cache/nmt"
    first = translated(model, notices)
    [folder] = (cache / "ctranslate2").iterdir()
    assert notices == [f"converting the model for CTranslate2, once: {folder}"]
    assert translated(model, notices) == first == translated(model, engine="torch", device="cpu")
    assert len(notices) == 1
    assert sorted(model.iterdir()) == before


def test_cache_that_cannot_be_written_is_reported(model, tmp_path):
    cache = tmp_path / "cache/nmt"
    cache.parent.mkdir()
    cache.write_text("no folder")
    with pytest.raises(NMTError, match=r"^cannot write [^\n]*ctranslate2[^\n]*$"):
        translated(model)


def test_conversion_depends_on_the_content_of_a_model_directory(model):
    """Not on its name or time stamps, so that a moved model is not converted again."""
    before = weights(model, "float32")
    for changed in ("model.safetensors", "config.json", "tokenizer.model"):
        content = (model / changed).read_bytes()
        (model / changed).write_bytes(content + b" ")
        assert weights(model, "float32") not in (before, weights(model, "int8"))
        (model / changed).write_bytes(content)
    assert weights(model.rename(model.with_name("other")), "float32") == before


@pytest.mark.parametrize(
    ("architecture", "words", "problem"),
    [
        ({"d_k": 4}, [], "model.d_k=4: engine=ctranslate2 needs model.d_k=8"),
        (
            {"attention_window": 5},
            [],
            "model.attention_window=5: engine=ctranslate2 needs model.attention_window=null",
        ),
        ({}, ["device=cuda"], "device=cuda: engine=ctranslate2 needs device=auto or cpu"),
        ({}, ["run=[model,model]"], "2 models, but no support for ensembles"),
        ({}, ["decode.length_penalty=1.1"], "decode.length_penalty=1.1"),
    ],
)
def test_engine_refuses_unsupported_settings_on_one_line(model, nmt, architecture, words, problem):
    describe(model, "model", **architecture)
    done = nmt("translate", "ka nu", "run=model", "engine=ctranslate2", *words)
    done.failed(problem, "engine=torch")


@pytest.mark.parametrize(
    ("words", "engine", "reason"),
    [
        ([], "ctranslate2", ""),
        (["precision=int8"], "ctranslate2", ""),
        (["format=jsonl", "decode.n_best=4"], "ctranslate2", ""),
        (["decode.do_sample=true"], "torch", "decode.do_sample=true"),
        (["target_prefix=ka"], "torch", "target_prefix=ka"),
        (["split=never"], "torch", "split=never"),
        (["glossary=terms.tsv"], "ctranslate2", ""),
        (["precision=bfloat16"], "torch", ""),
        (["devices=2"], "torch", ""),
        (["device=cuda"], "torch", "device=cuda"),
    ],
)
def test_auto_chooses_an_engine_and_reports_the_reason(checkpoint, words, engine, reason):
    notices = []
    options = compose("translate", [f"run={checkpoint}", *words]).translator
    assert with_engine(options, notices.append).compute.engine == engine
    # There is nothing to report if only one engine supports the precision or several devices.
    has_choice = words not in (["precision=bfloat16"], ["precision=int8"], ["devices=2"])
    assert len(notices) == has_choice
    for notice in notices:
        assert notice.startswith(f"engine={engine}")
        assert reason in notice


def test_auto_chooses_torch_for_a_gpu(checkpoint, monkeypatch):
    """The choice affects the output, so a job resumes only with the same engine."""
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    options = compose("translate", [f"run={checkpoint}"]).translator
    assert what_affects_output(with_engine(options, print))["engine"] == "torch"
    on_processor = replace(options, compute=replace(options.compute, device="cpu"))
    assert what_affects_output(with_engine(on_processor, print))["engine"] == "ctranslate2"


def test_translate_reports_the_engine(nmt, checkpoint):
    done = nmt("translate", checkpoint, "ka nu lo")
    assert "nmt: engine=ctranslate2\n" in done.err
    assert nmt("translate", checkpoint, "ka nu lo", "engine=torch").out == done.out


def test_translate_splits_lines_that_are_longer_than_the_engine_s_positions(nmt, checkpoint):
    done = nmt("translate", checkpoint, "ka " * 3000, "decode.max_extra_length=0", "decode=greedy")
    assert done.out.count("\n") == 1
    assert "translated in parts" in done.err
