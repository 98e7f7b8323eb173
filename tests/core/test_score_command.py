"""What `nmt score` reads and writes."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.commands.score import ScoreConfig, output_of as report
from nmt.errors import NMTError
from nmt.evaluation import score

REFERENCES = ["eins zwei drei vier fünf", "sechs sieben acht neun", "zehn elf zwölf", "dreizehn"]
HYPOTHESES = ["eins zwei drei vier sechs", "sechs sieben acht neun", "zehn elf", "vierzehn"]
SOURCES = ["one two three four five", "six seven eight nine", "ten eleven twelve", "thirteen"]


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    texts = {"hypothesis": HYPOTHESES, "reference": REFERENCES, "source": SOURCES}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: str(tmp_path / name) for name in texts}


def test_text_is_a_line_for_each_score_and_json_holds_every_digit(files):
    metrics = ["bleu", "ter"]
    config = ScoreConfig(
        hypothesis=files["hypothesis"],
        reference=files["reference"],
        metrics=metrics,
        language="fr",
        lowercase=True,
    )
    expected = score(HYPOTHESES, REFERENCES, metrics, "fr", lowercase=True)
    assert report(config) == "".join(f"{s.name} = {s.value:.2f}  {s.signature}\n" for s in expected)
    assert json.loads(report(replace(config, format="json"))) == [vars(s) for s in expected]


@pytest.mark.parametrize(
    ("names", "language", "tokenizer"),
    [
        (("out.ja", "ref.ja"), None, "char"),
        (("out", "ref.th.gz"), None, "char"),
        (("out.zh-Hans", "ref"), None, "zh"),
        (("out.txt", "ref.en-de.de"), None, "13a"),
        (("out.ja", "ref.ja"), "zh", "zh"),
    ],
)
def test_the_language_is_that_of_the_key_or_of_a_files_name(
    names, language, tokenizer, tmp_path, monkeypatch
):
    installed = ("13a", "zh")
    monkeypatch.setattr(
        "nmt.evaluation.command_for", lambda tokenize: "" if tokenize in installed else "install"
    )
    hypothesis, reference = (tmp_path / name for name in names)
    for path in (hypothesis, reference):
        content = b"1 2 3 4\n"
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    config = ScoreConfig(str(hypothesis), str(reference), metrics=["bleu"], language=language)
    assert f"|tok:{tokenizer}|" in report(config)


@pytest.mark.parametrize(("count", "indices"), [(1, [0]), (2, [0, 2]), (9, [0, 1, 2, 3])])
def test_examples_are_triples_spread_evenly_above_the_scores(files, count, indices):
    expected = ""
    for i in indices:
        expected += f"     source  {SOURCES[i]}\n"
        expected += f"  reference  {REFERENCES[i]}\n"
        expected += f"translation  {HYPOTHESES[i]}\n\n"
    expected += report(ScoreConfig(**files, metrics=["bleu"]))
    assert report(ScoreConfig(**files, metrics=["bleu"], examples=count)) == expected


def test_invalid_utf_8_is_reported_with_its_line(files):
    Path(files["hypothesis"]).write_bytes(b"a\nb\n\xffc\nd\n")
    message = rf"^{files['hypothesis']}, line 3: invalid UTF-8 at .*iconv -f LATIN1"
    with pytest.raises(NMTError, match=message):
        report(ScoreConfig(**files, metrics=["bleu"]))


@pytest.mark.parametrize("name", ["hypothesis", "reference", "source"])
def test_a_missing_file_is_reported_by_name(files, name):
    Path(files[name]).unlink()
    with pytest.raises(NMTError, match=rf"^{files[name]}: No such file"):
        report(ScoreConfig(**files, metrics=["bleu"]))


@pytest.mark.parametrize(
    ("hypotheses", "notice"),
    [
        (["1\t-0.5\teins", "2\t-1.25\tzwei", "3\t0.0\t"], "rows of `nmt translate format=tsv`"),
        (["1\t-0.5\teins\t0.93", "2\t-1.25\tzwei\t0.01", "3\t-2\t\t0.1"], "format=tsv"),
        (["⚠ eins", "zwei", "⚠ drei"], "2 hypotheses begin with the mark `⚠`"),
        (["⚠ eins", "zwei", "drei"], "1 hypothesis begins with the mark `⚠`"),
        (["eins", "", " "], "2 of 3 hypotheses are empty"),
        (["eins", "", "drei"], "1 of 3 hypotheses is empty"),
        (["1\tzwei", "zwei\tdrei", "12"], ""),
    ],
)
def test_hypotheses_that_are_no_plain_translations(tmp_path, capsys, hypotheses, notice):
    output = tmp_path / "output"
    output.write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    reference = tmp_path / "reference"
    reference.write_text("eins\nzwei\ndrei\n")
    report(ScoreConfig(hypothesis=str(output), reference=str(reference), metrics=["chrf"]))
    message = capsys.readouterr().err
    assert notice in message
    assert bool(message) == bool(notice)
