"""Documents with a model between 202 languages."""

from pathlib import Path

import pytest

TEXT = "ཀ ক ອая"
SEARCH = ["engine=torch", "decode.beam_size=2", "decode.max_extra_length=3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.html", f'<html lang="fr"><p>{TEXT}</p></html>', '<html dir="rtl" lang="fa">'),
        (
            "a.xlf",
            '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
            '<file source-language="fr" datatype="plaintext" original="a">'
            f'<body><trans-unit id="1"><source>{TEXT}</source></trans-unit></body></file></xliff>',
            'target-language="fa"',
        ),
        (
            "a.po",
            f'msgid ""\nmsgstr "Language: \\n"\n\nmsgid "{TEXT}"\nmsgstr ""\n',
            "Language: fa",
        ),
    ],
)
def test_documents_state_the_target_language(nmt, nllb_model, tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    output = f"out{Path(name).suffix}"
    job = ["translate", name, str(nllb_model), f"output={output}", *SEARCH]
    done = nmt(*job, "source=fr", "target=fa")
    assert done.code == 0, done.err
    written = Path(output).read_text()
    assert expected in written
    [text] = nmt("translate", TEXT, str(nllb_model), "target=fr2fa", *SEARCH).out.splitlines()
    assert text in written


@pytest.mark.parametrize("words", [[], ["target=de"], ["source=en"]])
def test_missing_languages_end_in_one_line(nmt, nllb_model, tmp_path, monkeypatch, words):
    (tmp_path / "a.html").write_text(f"<p>{TEXT}</p>")
    # Before the weights are read, which takes long.
    monkeypatch.setattr("nmt.search.TorchEngine", None)
    done = nmt("translate", "a.html", str(nllb_model), "output=b.html", *SEARCH, *words)
    assert done.code == 2
    missing = "target" if words == ["source=en"] else "source"
    assert done.err == (
        f"nmt: the {missing} language is not known; pass both, such as target=en2de\n"
    )
