"""The line in which training names the programs that its model can be exported to."""

import pytest

from nmt import registry
from nmt.commands import compose
from nmt.extensions import ExporterEntry
from nmt.registry import entries_of
from nmt.training.exports import exports_in_words


@pytest.fixture
def say(toy):
    return lambda *words: exports_in_words(compose("train", [*toy, *words]), 300)


@pytest.mark.slow
@pytest.mark.skipif(
    not {"ctranslate2", "huggingface", "bergamot"} <= entries_of(ExporterEntry).keys(),
    reason="no plugin",
)
@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "to ctranslate2 and huggingface; bergamot needs model.decoder=ssru, "),
        (["data.tag=<2de>"], "model.norm_epsilon=1e-06, data.tag=null"),
        (
            ["model.attention=additive"],
            "ctranslate2 needs model.attention=scaled_dot_product; huggingface needs ",
        ),
        (["model.d_k=3"], "ctranslate2 needs model.d_k=8; "),
    ],
    ids=str,
)
def test_the_line_gives_the_reasons_of_the_tables(say, words, line):
    assert line in say(*words)
    assert "\n" not in say(*words)


@pytest.mark.skipif("bergamot" not in entries_of(ExporterEntry), reason="no plugin")
def test_a_student_model_fits_firefox(say):
    shape = [
        "model.decoder=ssru",
        "model.positions=tensor2tensor",
        "model.zero_start=true",
        "model.norm_epsilon=1e-6",
    ]
    assert "can be exported to bergamot; " in say(*shape, "model.d_model=32")
    assert "bergamot needs a multiple of 16 for model.d_model" in say(*shape, "model.d_model=24")


def test_an_exporter_that_is_removed_is_not_named(say, monkeypatch):
    entries = {**registry.registry(), ExporterEntry: {}}
    monkeypatch.setattr(registry, "registry", lambda: entries)
    assert say() == ""
