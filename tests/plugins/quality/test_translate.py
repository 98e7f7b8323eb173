"""`nmt translate minimum=`: what is probably not good is marked or left out."""

import json
import re
import shutil
from pathlib import Path

import polib
import pytest

import nmt as api
from nmt.commands import compose, translate as command
from nmt.config import NMTError
from nmt.files import find_model_directory
from nmt.plugins.quality.features import Judged
from nmt.plugins.quality.record import read_record
from nmt.plugins.quality.stage import QualityStage
from nmt.translation import MARK, Translation, find_models
from tests.helpers.options import translator_options
from tests.plugins.quality.conftest import COMPUTE, random_lines, write

BELOW = "less probable to be good than minimum=0.5"
LINES = [*random_lines(40, seed=3), ""]
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de" original="a" datatype="plaintext"><body>
<trans-unit id="good"><source>{good}</source></trans-unit>
<trans-unit id="bad"><source>{bad}</source></trans-unit>
</body></file></xliff>
"""
XLIFF2 = """<xliff version="2.0" srcLang="en" trgLang="de"
 xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">
<unit id="1"><segment id="good"><source>{good}</source></segment></unit>
<unit id="2"><segment id="bad" state="initial"><source>{bad}</source></segment></unit>
</file></xliff>
"""
CATALOG = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "{good}"
msgstr ""

msgid "{bad}"
msgstr ""
"""


@pytest.fixture
def lines(here) -> list[str]:
    write(here / "in", LINES)
    return LINES


@pytest.fixture
def records(translated, lines) -> list[dict]:
    """The best translation of each line, with its probability."""
    out = translated("in", "format=jsonl", "minimum=0.5").out
    return [json.loads(line)["translations"][0] for line in out.splitlines()]


@pytest.fixture
def texts(records) -> dict[str, str]:
    """A source line with a good translation, and one without."""
    kinds = {}
    for line, record in zip(LINES, records, strict=True):
        kinds.setdefault("bad" if record["below_minimum"] else "good", line)
    return kinds


def test_every_format_agrees(translated, records):
    plain = [record["text"] for record in records]
    below = [record["probability"] < 0.5 for record in records]
    assert [record["below_minimum"] for record in records] == below
    assert 10 < sum(below) < 30
    # Known words come from every second line, and their translations are good.
    assert not any(below[0:-1:2])
    assert records[-1]["probability"] == 1  # blank
    marked = translated("in", "minimum=0.5")
    expected = [MARK + text if bad else text for text, bad in zip(plain, below, strict=True)]
    assert marked.out.splitlines() == expected
    assert f"nmt: {sum(below)} lines: {BELOW}" in marked.err
    omitted = translated("in", "minimum=0.5", "below=omit")
    assert omitted.out.split("\n")[:-1] == [
        "" if bad else text for text, bad in zip(plain, below, strict=True)
    ]
    table = translated("in", "minimum=0.5", "format=tsv").out.splitlines()
    for row, record in zip(table, records, strict=True):
        _, _, text, probability = row.split("\t")
        assert (text, float(probability)) == (record["text"], record["probability"])


def test_a_notice_shows_that_a_probability_is_below(translated, records):
    number, probability = next(
        (number, record["probability"])
        for number, record in enumerate(records, 1)
        if record["probability"] < 0.99
    )
    write(Path("one"), [LINES[number - 1]])
    minimum = round(probability + 0.0001, 4)
    message = translated("one", f"minimum={minimum}").err
    assert f"less probable to be good than minimum={minimum:g}: " in message
    assert f"probability {probability:.4f}" in message


def test_only_jsonl_has_probabilities_without_a_minimum(translated, records):
    rows = translated("in", "format=jsonl").out.splitlines()
    for row, record in zip(rows, records, strict=True):
        [best] = json.loads(row)["translations"]
        assert best["probability"] == record["probability"]
        assert "below_minimum" not in best
    assert translated("in", "format=tsv").out.splitlines()[0].count("\t") == 2
    assert MARK not in translated("in").out


def test_an_interrupted_job_resumes_to_the_same_bytes(
    nmt, calibrated, lines, here, monkeypatch, tmp_path
):
    model = shutil.copytree(calibrated, tmp_path / "model")
    options = ["in", f"run={model}", "engine=torch", "minimum=0.5", "buffer=3"]
    assert nmt("translate", *options, "output=expected").code == 0
    expected = Path("expected").read_bytes()
    render = command.render

    def interrupt(number: int, *rest):
        if number == 20:
            raise KeyboardInterrupt
        return render(number, *rest)

    def begin() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(command, "render", interrupt)
            assert nmt("translate", *options, "output=out").code == 130

    begin()
    resumed = nmt("translate", *options, "output=out")
    assert "resuming after 19 of 41 lines" in resumed.err
    assert Path("out").read_bytes() == expected
    # Other probabilities would not fit the first lines.
    Path("out").unlink()
    begin()
    path = model / "quality.json"
    path.write_text(path.read_text() + " ")
    nmt("translate", *options, "output=out").failed("another quality.json")
    nmt("translate", *options[:3], "minimum=0.4", "output=out").failed("minimum")


def test_parts_are_joined_to_the_same_bytes(translated, nmt, lines):
    expected = translated("in", "minimum=0.5").out
    for part in ("1/2", "2/2"):
        translated("in", "minimum=0.5", "output=out", f"part={part}")
    assert nmt("gather", "out").code == 0
    assert Path("out").read_text() == expected


def test_messages_of_a_catalog_are_fuzzy_or_left_untranslated(translated, texts, here):
    write(here / "a.po", [CATALOG.format(**texts)])
    marked = translated("a.po", "minimum=0.5")
    messages = {entry.msgid: entry for entry in polib.pofile(marked.out)}
    assert not messages[texts["good"]].fuzzy
    assert messages[texts["bad"]].fuzzy
    assert all(entry.msgstr for entry in messages.values())
    omitted = translated("a.po", "minimum=0.5", "below=omit")
    messages = {entry.msgid: entry for entry in polib.pofile(omitted.out)}
    assert messages[texts["good"]].msgstr
    assert not messages[texts["bad"]].msgstr
    assert "1" in omitted.err
    # A person has translated exactly this text.
    write(here / "m.tsv", [f"{texts['bad']}\tvon Hand"])
    remembered = polib.pofile(translated("a.po", "minimum=0.5", "memory=m.tsv").out)
    message = remembered.find(texts["bad"])
    assert (message.msgstr, message.fuzzy) == ("von Hand", False)
    # As before: without a minimum, nobody has decided what can be trusted.
    usual = polib.pofile(translated("a.po").out)
    assert all(entry.fuzzy for entry in usual)


def test_units_of_xliff_have_a_state(translated, texts, here):
    write(here / "a.xlf", [XLIFF.format(**texts)])
    states = re.findall(r'<target state="([^"]*)">', translated("a.xlf", "minimum=0.5").out)
    assert states == ["translated", "needs-review-translation"]
    usual = re.findall(r'<target state="([^"]*)">', translated("a.xlf").out)
    assert usual == ["needs-review-translation"] * 2
    write(here / "b.xlf", [XLIFF2.format(**texts)])
    segments = re.findall("<segment ([^>]*)>", translated("b.xlf", "minimum=0.5").out)
    assert segments == [
        'id="good" state="translated"',
        'id="bad" state="translated" subState="nmt:needs-review"',
    ]


def test_other_documents_keep_the_source_or_say_that_they_have_no_marks(translated, texts, here):
    write(here / "a.md", [f"# {texts['good']}", "", f"*{texts['bad']}*"])
    marked = translated("a.md", "minimum=0.5")
    unmarked = f"this format has no marks, so 1 line is not marked: segment 2 ('{texts['bad'][:9]}"
    assert unmarked in marked.err
    omitted = translated("a.md", "minimum=0.5", "below=omit")
    assert omitted.out.endswith(f"\n\n*{texts['bad']}*\n")
    assert not omitted.out.startswith(f"# {texts['good']}")
    assert BELOW in omitted.err


def test_notices_name_the_doubtful_lines_of_a_document(translated, texts, here):
    lines = [texts["bad"] if number in (3, 7, 12) else texts["good"] for number in range(1, 13)]
    write(here / "a.md", "\n\n".join(lines).splitlines())
    (here / "docs").mkdir()
    write(here / "docs/b.md", "\n\n".join([texts["bad"]] * 12).splitlines())
    notice = unmarked_of(translated("a.md", "minimum=0.5").err)
    assert notice.startswith("a.md: this format has no marks, so 3 lines are not marked: segments ")
    assert re.findall(r"(\d+) \('", notice) == ["3", "7", "12"]
    assert " and 12 ('" in notice
    summary = translated("a.md", "minimum=0.5", "below=omit").err.splitlines()[-1]
    assert re.findall(r"(\d+) \('", summary) == ["3", "7", "12"]
    # A folder has such a notice for each file. Of many lines, ten are named.
    notice = unmarked_of(translated("docs", "output=new", "minimum=0.5").err)
    assert notice.startswith("b.md: ")
    assert re.findall(r"(\d+) \('", notice) == [str(number) for number in range(1, 11)]
    assert ") and 2 others; to keep their source text" in notice


def unmarked_of(messages: str) -> str:
    """The only notice about lines without marks."""
    [line] = [line for line in messages.splitlines() if "not marked" in line]
    return line.removeprefix("nmt: ")


def test_a_folder_of_documents(translated, texts, here):
    (here / "docs").mkdir()
    write(here / "docs/a.md", [texts["good"], "", texts["bad"]])
    translated("docs", "output=new", "minimum=0.5", "below=omit")
    assert Path("new/a.md").read_text().endswith(f"\n\n{texts['bad']}\n")


def test_given_translations_have_the_probabilities_of_the_search(nmt, calibrated, records, lines):
    """Forced decoding finds the log P of the search."""
    kept = [(line, r) for line, r in zip(lines, records, strict=True) if line]
    write(Path("s"), [line for line, _ in kept])
    write(Path("h"), [record["text"] for _, record in kept])
    command = ["score", "h", "source=s", f"run={calibrated}", "qe=true", "threads=1"]
    outcome = nmt(*command, "format=tsv")
    assert outcome.code == 0, outcome.err
    rows = [row.split("\t") for row in outcome.out.splitlines()]
    assert [int(number) for number, _ in rows] == [*range(1, len(kept) + 1)]
    expected = [record["probability"] for _, record in kept]
    assert [float(probability) for _, probability in rows] == pytest.approx(expected, abs=0.02)
    mean = sum(expected) / len(expected)
    assert f"mean probability {mean:.2f}" in outcome.err
    tree = json.loads(nmt(*command, "format=json").out)
    assert tree["probabilities"] == [float(probability) for _, probability in rows]
    assert tree["mean_probability"] == pytest.approx(mean, abs=0.01)
    nmt(*command, "reference=s").refused("reference=s: omit it with qe=true")
    nmt("score", "h", "source=s", "qe=true").refused("needs one calibrated model; pass run=RUN")


def test_python_has_probabilities(calibrated, records):
    model = api.load(calibrated, engine="torch", threads=1)
    rows = model.explain(LINES)
    assert [row[0].probability for row in rows] == [record["probability"] for record in records]
    omitted = model.translate(LINES[:4], minimum=0.5, below="omit")
    assert [bool(text) for text in omitted] == [
        not record["below_minimum"] for record in records[:4]
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["run=RUN"], "is not calibrated; run `nmt calibrate RUN`"),
        (["run=[RUN,RUN]"], "minimum=0.9: not supported for ensembles"),
        (["run=RUN", "decode.do_sample=true"], "minimum=0.9: not supported with decode.do_sample"),
        (["run=RUN", "minimum=90"], "minimum=90"),
    ],
)
def test_what_has_no_probabilities(nmt, word_model, lines, words, problem):
    model = find_model_directory(str(word_model))
    words = [word.replace("RUN", str(model)) for word in words]
    outcome = nmt("translate", "in", "minimum=0.9", "engine=torch", *words)
    outcome.refused(problem.replace("RUN", str(model)))


def test_a_line_that_is_only_copied_is_not_trusted(calibrated):
    options = translator_options(str(calibrated), **COMPUTE)
    record = read_record(find_model_directory(str(calibrated)), "model")
    stage = QualityStage(options, find_models(options.run), record)
    # Numbers and addresses stay as they are in any language.
    texts = ["Привет мир как у тебя дела", "12345", "https://example.com/a"]
    translations = [Translation(text, 0.0, 0.0) for text in texts]
    stage.judge([Judged(text, text, 0.0, tokens=0) for text in texts], translations)
    foreign, number, address = [translation.probability for translation in translations]
    assert foreign == pytest.approx(min(stage.fit.calibration.probabilities), abs=1e-4)
    assert number > foreign < address


def test_a_minimum_that_no_translation_reaches_is_reported(nmt, calibrated, lines, tmp_path):
    model = Path(shutil.copytree(calibrated, tmp_path / "model"))
    record = json.loads((model / "quality.json").read_text())
    for fit in record["fits"]:
        fit["probabilities"] = [probability / 2 for probability in fit["probabilities"]]
    highest = max(record["fits"][0]["probabilities"])
    (model / "quality.json").write_text(json.dumps(record))
    options = ["translate", "in", f"run={model}", "engine=torch"]
    notice = f"this model's translations have probabilities of at most {highest:.4f}"
    outcome = nmt(*options, "minimum=0.9")
    assert f"minimum=0.9: {notice}" in outcome.err
    assert all(line.startswith(MARK) for line in outcome.out.splitlines() if line)
    assert notice not in nmt(*options, f"minimum={highest}").err


def test_a_calibration_of_other_weights_is_reported_or_refused(nmt, calibrated, lines, tmp_path):
    model = Path(shutil.copytree(calibrated, tmp_path / "model"))
    record = json.loads((model / "quality.json").read_text())
    (model / "quality.json").write_text(json.dumps(record | {"weights": "0" * 64}))
    options = ["translate", "in", f"run={model}", "engine=torch"]
    outcome = nmt(*options, "format=jsonl")
    assert outcome.code == 0
    assert "without probabilities: " in outcome.err
    assert "probability" not in json.loads(outcome.out.splitlines()[0])["translations"][0]
    nmt(*options, "minimum=0.5").refused("other weights than model.safetensors")


def test_another_search_is_reported(translated, lines):
    assert (
        "decode.beam_size=1: the probabilities were"
        in translated("in", "minimum=0.5", "decode=greedy").err
    )
    assert "calibrated with" not in translated("in", "minimum=0.5").err


def test_a_line_far_beyond_the_lengths_of_the_model_has_no_probability(nmt, calibrated, here):
    write(here / "s", ["va so", "ka " * 5000, "va so"])
    write(here / "h", ["va so", "ka", "va so"])
    command = ["score", "h", "source=s", f"run={calibrated}", "threads=1"]
    outcome = nmt(*command, "qe=true")
    first, middle, last = outcome.out.splitlines()
    assert first == last != middle == ""
    assert "1 line has no probability, because it is too long for the model" in outcome.err
    nmt(*command).refused("line 2: too long for the model", "tokens (limit: 4,096)")


def test_below_needs_a_minimum(here):
    with pytest.raises(NMTError, match="below=omit: needs a minimum; pass minimum=") as error:
        compose("translate", ["run=model", "below=omit"])
    assert "\n" not in str(error.value)
