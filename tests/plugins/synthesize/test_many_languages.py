"""`nmt synthesize` with a model between 202 languages."""

from pathlib import Path

TEXT = "ཀ ক ອая"
SEARCH = ["engine=torch", "decode.beam_size=2", "decode.max_extra_length=3"]


def test_files_are_named_by_the_languages(nmt, nllb_model, tmp_path):
    (tmp_path / "in.txt").write_text(f"{TEXT}\n")
    job = ["synthesize", "in.txt", str(nllb_model), "output=out", "flagged=keep", *SEARCH]
    missing = nmt(*job, "target=ja")
    assert missing.code == 2
    assert "the source language is not known; pass both, such as target=en2de" in missing.err
    assert not Path("out").exists()
    done = nmt(*job, "source=fr", "target=ja")
    assert done.code == 0, done.err
    assert Path("out/train.fra_Latn").read_text() == f"{TEXT}\n"
    translated = nmt("translate", TEXT, str(nllb_model), "target=fr2ja", *SEARCH)
    assert Path("out/train.jpn_Jpan").read_text() == translated.out
    assert "different source" in nmt(*job, "source=de", "target=ja").err
