"""`engine=auto`: CTranslate2 where it can do what is asked, else torch, with a notice that names the reason."""

import pytest

from nmt.commands import compose
from nmt.translation import what_decides, with_engine


@pytest.fixture(autouse=True)
def torch_by_default(monkeypatch, tmp_path):
    """Here auto may choose, and converts models in the test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 0)


@pytest.mark.parametrize(
    ("words", "engine", "reason"),
    [
        ([], "ctranslate2", ""),
        (["precision=int8"], "ctranslate2", ""),
        (["format=jsonl", "decode.n_best=4"], "ctranslate2", ""),
        (["decode.do_sample=true"], "torch", "decode.do_sample=true"),
        (["decode.min_length=3"], "torch", "decode.min_length=3"),
        (["target_prefix=ka"], "torch", "target_prefix=ka"),
        (["split=never"], "torch", "split=never"),
        (["glossary=terms.tsv"], "torch", "no search for given words"),
        (["precision=bfloat16"], "torch", ""),
        (["devices=2"], "torch", ""),
        (["device=cuda"], "torch", "device=cuda"),
    ],
)
def test_the_engine_and_the_reason(checkpoint, words, engine, reason):
    notices = []
    config = with_engine(compose("translate", [f"run={checkpoint}", *words]).translator, notices.append)
    assert config.compute.engine == engine
    # There is nothing to report where only one engine has the arithmetic.
    assert len(notices) == (words not in (["precision=bfloat16"], ["precision=int8"], ["devices=2"]))
    assert all(notice.startswith(f"engine={engine}") and reason in notice for notice in notices)


def test_a_gpu_is_for_torch(checkpoint, monkeypatch):
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    assert with_engine(compose("translate", [f"run={checkpoint}"]).translator, print).compute.engine == "torch"
    options = compose("translate", [f"run={checkpoint}", "device=cpu"]).translator
    assert with_engine(options, print).compute.engine == "ctranslate2"


def test_the_command_reports_the_engine_and_resumes_with_no_other(nmt, checkpoint):
    done = nmt("translate", checkpoint, "ka nu lo")
    assert "nmt: engine=ctranslate2\n" in done.err
    same = nmt("translate", checkpoint, "ka nu lo", "engine=torch")
    assert same.out == done.out
    configs = [compose("translate", [f"run={checkpoint}", *words]).translator for words in ([], ["split=never"])]
    assert [what_decides(with_engine(config, print))["engine"] for config in configs] == ["ctranslate2", "torch"]


def test_a_sentence_longer_than_the_engine_s_positions_is_translated_in_parts(nmt, checkpoint):
    """With `split=auto`; the sinusoids of torch have no end."""
    done = nmt("translate", checkpoint, "ka " * 3000, "decode.max_extra_length=0", "decode=greedy")
    assert done.out.count("\n") == 1
    assert "tokens, translated in parts" in done.err
