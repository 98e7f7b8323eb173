"""`nmt compare`: from words on the command line to numbers, an exit code and a page."""

import base64
import hashlib
import json
import random
import shutil
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
import sacrebleu

FAST = ("resamples=100", "trials=100")
NO_PAGE = "output=null"


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """source, reference, and the translations `good` and `bad`."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(3)
    words = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    references = [f"{' '.join(generator.choices(words, k=generator.randint(3, 12)))} {n}." for n in range(80)]
    write("source", [line.upper() for line in references])
    write("reference", references)
    write("good", [line.replace("zwei", "drei") for line in references])
    write("bad", [line.replace("zwei", "x").replace("acht", "y").replace("neun", "z") for line in references])
    return ["source=source", "reference=reference", *FAST]


def test_numbers_of_files_as_json_and_as_text(nmt, files):
    ended = nmt("compare", "good", "bad", *files, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    references = Path("reference").read_text().splitlines()
    for system in found["systems"]:
        lines = Path(system["name"]).read_text().splitlines()
        (seed,) = system["seeds"]
        assert seed["scores"]["bleu"]["value"] == sacrebleu.corpus_bleu(lines, [references]).score
        assert seed["scores"]["chrf"]["value"] == sacrebleu.corpus_chrf(lines, [references]).score
        assert seed["cost"] is None
    (comparison,) = found["comparisons"]
    assert (comparison["system"], comparison["against"]) == ("bad", "good")
    assert comparison["metrics"]["bleu"]["significant"]
    assert not comparison["metrics"]["bleu"]["better"]
    assert (found["seed"], found["lines"], found["first_is_worse"]) == (12345, 80, False)
    text = nmt("compare", "good", "bad", *files, "seed=3").out
    assert "bad against good: BLEU -" in text
    assert "significantly worse (paired bootstrap p <= 0.0099, approximate randomisation p <= 0.0099)" in text
    assert "seed:3|" in text
    assert "sentences/s" not in text  # no model was compared


def test_the_exit_code_is_1_only_where_the_first_is_significantly_worse(nmt, files):
    assert nmt("compare", "good", "bad", *files, NO_PAGE, "fail_if=worse").code == 0
    ended = nmt("compare", "bad", "good", *files, NO_PAGE, "fail_if=worse")
    assert ended.code == 1
    assert "nmt: bad is significantly worse than good (fail_if=worse)" in ended.err
    assert nmt("compare", "bad", "good", *files, NO_PAGE).code == 0
    lines = Path("good").read_text().splitlines()
    write("nearly", [lines[0].replace("e", "ee"), *lines[1:]])
    assert nmt("compare", "nearly", "good", *files, NO_PAGE, "fail_if=worse").code == 0
    assert nmt("compare", "bad", "good", *files, NO_PAGE, "fail_if=worse", "metrics=[ter]").code == 1


def test_text_page_and_json_have_the_reason_why_nothing_is_significant(nmt, files):
    lines = Path("good").read_text().splitlines()
    write("nearly", [lines[0].replace("e", "ee"), *lines[1:]])
    verdict = "not significantly different: only the approximate randomisation has p < 0.05"
    assert f"{verdict} (paired" in nmt("compare", "nearly", "good", *files, "metrics=bleu").out
    assert verdict in shown(parsed("compare.html"))
    tree = json.loads(nmt("compare", "nearly", "good", *files, "metrics=bleu", "--json").out)
    assert tree["comparisons"][0]["metrics"]["bleu"]["verdict"] == verdict
    for name in ("source", "reference", "good", "bad"):
        write(name, Path(name).read_text().splitlines()[:49])
    ended = nmt("compare", "bad", "good", *files, "fail_if=worse", "metrics=[bleu,chrf++,ter]")
    assert ended.code == 0, ended.err
    assert "fail_if=worse cannot fail with fewer than 50 lines" in ended.err
    assert "chrF2++, paired bootstrap: nrefs:1|" in ended.out
    assert "\nno *: tests need 50 lines, and there are 49;" in ended.out
    assert (ended.out.count("*"), " p " in ended.out) == (1, False)
    assert not [star for star in parsed("compare.html").iter("b") if star.get("class") == "star"]


def test_seeds_of_a_system_are_a_group(nmt, files):
    lines = Path("bad").read_text().splitlines()
    write("bad2", [lines[0], *(line.replace("vier", "v") for line in lines[1:])])
    ended = nmt("compare", "old=[bad,bad2]", "good", *files, NO_PAGE, "--json")
    assert ended.code == 0, ended.err
    old, good = json.loads(ended.out)["systems"]
    assert [seed["path"] for seed in old["seeds"]] == ["bad", "bad2"]
    values = [seed["scores"]["bleu"]["value"] for seed in old["seeds"]]
    assert old["scores"]["bleu"]["mean"] == pytest.approx(sum(values) / 2)
    assert old["scores"]["bleu"]["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert good["scores"]["bleu"]["deviation"] is None
    assert "old, 2 seeds" in nmt("compare", "good", "old=[bad,bad2]", *files, NO_PAGE).out


def parsed(page: str) -> ET.Element:
    text = Path(page).read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def shown(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def section(root: ET.Element, title: str) -> ET.Element:
    (found,) = (element for element in root.iter("section") if element.findtext("h2") == title)
    return found


def test_every_tenth_translation_that_loses_its_number_is_on_top_of_the_page(nmt, files):
    lines = Path("reference").read_text().splitlines()
    write("broken", [line.rsplit(" ", 1)[0] if number % 10 == 0 else line for number, line in enumerate(lines)])
    ended = nmt("compare", "reference", "broken", *files, "examples=20", "output=page.html")
    assert ended.code == 0, ended.err
    assert "the page is page.html" in ended.err
    root = parsed("page.html")
    first = next(section(root, "Where the difference is unusual").iter("li"))
    assert shown(first).startswith("A number is lost: in 8 lines by broken, in 0 by reference, of 80 (+8, 95 %")
    assert first.get("class") == "worse"
    assert [element.findtext("h2") for element in root.iter("section")] == [
        *("Where the difference is unusual", "Scores", "Buckets", "Lines: broken against reference")
    ]
    told = section(root, "Lines: broken against reference")
    assert [h.text for h in told.iter("h3")] == ["Won by broken", "Lost by broken"]
    articles = list(told.iter("article"))
    assert {int(article.get("data-line")) for article in articles} == {1, 11, 21, 31, 41, 51, 61, 71}
    assert all("a number is lost" in article.get("data-tags").split("|") for article in articles)
    for article in articles:
        marked = [mark.text for mark in article.iter("mark")]
        assert marked == [lines[int(article.get("data-line")) - 1].rsplit(" ", 1)[1]]


def test_the_page_and_the_json_have_every_bucket_with_its_lines_and_interval(nmt, files):
    write("training", ["EIN ZWEI DREI VIER"] * 200)
    ended = nmt("compare", "good", "bad", *files, "training=training", "--json")
    assert ended.code == 0, ended.err
    root = parsed("compare.html")
    buckets = section(root, "Buckets")
    tables = dict(zip([h.text for h in buckets.iter("h3")], buckets.iter("table"), strict=True))
    assert {"Words of the source", "Numbers in the source", "Capitals in the source"} < tables.keys()
    assert "Words were counted in the first 200 lines of training" in shown(buckets)
    for row in json.loads(ended.out)["buckets"]:
        (line,) = (tr for tr in tables[row["title"]].iter("tr") if tr.findtext("th") == row["label"])
        cells = [shown(cell) for cell in line.findall("td")]
        assert cells[0] == f"{row['count']:,}"
        (gap,) = row["gaps"]
        assert cells[3] == f"{gap['value']:+.1f} {gap['low']:+.1f} to {gap['high']:+.1f}".replace("-", "−")  # noqa: RUF001
    stars = [star for star in section(root, "Scores").iter("b") if star.get("class") == "star"]
    comparison = json.loads(ended.out)["comparisons"][0]
    assert len(stars) == sum(each["significant"] for each in comparison["metrics"].values()) == 3


HOSTILE = "</title></style></script><script>alert(1)</script><img src='http://x/'>\u202e\" onload=\"x"


def test_the_page_runs_its_own_script_alone_and_asks_nothing_of_any_other_place(nmt, files):
    for name in ("source", "reference", "good"):
        write(name, [f"{HOSTILE} {number}" for number in range(80)])
    write(bad := "a<script>", [f"{number} {HOSTILE} {HOSTILE}" for number in range(80)])
    assert nmt("compare", "good", bad, *files, "--json").code == 0
    root = parsed("compare.html")
    for element in root.iter():
        assert not [key for key in element.attrib if key.startswith("on") or key == "src"]
        assert element.get("href", "data:,") == "data:,"
    (script,) = root.iter("script")
    (policy,) = (m.get("content") for m in root.iter("meta") if m.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert shown(root).count("<script>alert(1)</script>") > 10


def test_without_a_page_no_file_is_written(nmt, files):
    before = {path.name for path in Path().iterdir()}
    assert nmt("compare", "good", "bad", *files, "output=null").code == 0
    assert {path.name for path in Path().iterdir()} == before
    nmt("compare", "good", "bad", *files, "output=nowhere/x.html").refused("there is no folder nowhere")


def test_mistakes_are_one_line(nmt, files):
    nmt("compare", "good", "bad", *files, "output=bad").refused("output=bad is an input", "another file")
    nmt("compare", "good").refused("two are needed", "nmt compare runs/new runs/old")
    nmt("compare", "good", "new=[good]", *files).refused("good", "given twice")
    nmt("compare", "good", "new=[bad,]", *files).refused("no such file")
    nmt("compare", "good", "bad").refused("good: of no run", "reference=FILE")
    nmt("compare", "good", "bad", "source=source").refused("reference=FILE")
    nmt("compare", "good", "bad", "metrics=[tokenised]").refused("metrics")
    write("short", ["x"])
    nmt("compare", "good", "short", *files).refused("short has 1 lines but reference has 80")
    Path("empty").mkdir()
    nmt("compare", "good", "empty", *files).refused("empty: neither a run nor a model directory")


def test_a_run_is_translated_once_as_nmt_translate_does_on_its_own_test_set(nmt, finished, toy, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(finished, "run")
    prepared = Path(toy[-1].removeprefix("prepared="))
    write("other", ["ka lo"] * 20)
    search = ("decode=greedy", "decode.max_extra_length=5")
    ended = nmt("compare", "run", "other", *search, *FAST, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["test_set"] == f"test set of {prepared}"
    assert nmt("translate", "run", f"input={prepared / 'test.en'}", "output=out", *search).code == 0
    score = sacrebleu.corpus_bleu(
        Path("out").read_text().splitlines(), [(prepared / "test.de").read_text().splitlines()]
    ).score
    (seed,) = found["systems"][0]["seeds"]
    assert seed["scores"]["bleu"]["value"] == score
    cost = seed["cost"]
    assert cost["lines"] == 20
    assert cost["size"] == (finished / "model" / "model.safetensors").stat().st_size
    assert 2**20 < cost["memory"] < 2**36
    assert cost["seconds"] > 0
    assert cost["keys"] == "engine=torch precision=float32 decode.beam_size=1 decode.max_extra_length=5"
    # Once: the same again takes what was kept, to the digit of its time, and another search does not.
    again = json.loads(
        nmt("compare", "run/model", "other", *search, *FAST, "split=test", "--json", f"prepared={prepared}").out
    )
    assert again["systems"][0]["seeds"][0]["cost"] == cost
    (kept,) = (tmp_path / "cache/nmt/compare").iterdir()
    kept.write_text('{"hypotheses": []}')
    assert json.loads(nmt("compare", "run", "other", *search, *FAST, "--json").out)["systems"][0]["scores"] == {
        metric: {"mean": each["value"], "deviation": None} for metric, each in seed["scores"].items()
    }


def test_compare_cite_report_and_translate_make_the_same_lines(nmt, finished, toy, tmp_path, monkeypatch):
    """Of lines with items to protect, and of one that is longer than those of the training."""
    from nmt.data import PreparedCorpus

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "run")
    text = (Path(toy[-1].removeprefix("prepared=")) / "test.en").read_text().splitlines()
    sources = [f"{line} %d {line} http://a.org/{number}" for number, line in enumerate(text)] + [" ".join(text)]
    write("test.en", sources)
    write("test.de", sources)
    write("other.de", ["x"] * len(sources))
    monkeypatch.setattr(PreparedCorpus, "text", lambda self, split: (sources, sources))
    search, files = ("decode=greedy", "decode.max_extra_length=5"), ("source=test.en", "reference=test.de")
    assert nmt("translate", "run", "input=test.en", "output=out.de", *search).code == 0
    assert nmt("translate", "run", "input=test.en", "output=bare.de", "protect=none", *search).code == 0
    assert Path("out.de").read_text() != Path("bare.de").read_text()
    [bleu, *_] = json.loads(nmt("score", "out.de", "test.de", "--json").out)
    assert nmt("cite", "run", *files, "output=cited.zip", *search).code == 0
    with zipfile.ZipFile("cited.zip") as bundle:
        assert bundle.read("hypotheses.de") == Path("out.de").read_bytes()
    assert nmt("verify", "cited.zip", "run=run", *files).code == 0
    found = json.loads(nmt("compare", "run", "other.de", *files, *FAST, *search, "--json").out)
    assert found["systems"][0]["seeds"][0]["scores"]["bleu"]["value"] == bleu["value"]
    assert nmt("average", "run=run", "last=1", "output=last").code == 0
    for model in ("run", "last"):
        assert nmt("translate", model, "input=test.en", "output=out.de", *search).code == 0
        [bleu, *_] = json.loads(nmt("score", "out.de", "test.de", "--json").out)
        assert nmt("report", "run", "split=test", "sentences=null", *search).code == 0
        assert f"{bleu['value']:.2f}" in shown(section(parsed("run/report.html"), "Scores"))
        shutil.rmtree("run/model", ignore_errors=True)  # then the report is of the last checkpoint


def test_what_is_told_of_a_translation_is_what_made_it(nmt, finished, tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert nmt("export", str(finished), "precision=int8", "output=small", "decode=greedy").code == 0
    shutil.copytree(finished, "run")
    search = ("decode=greedy", "threads=1")
    ended = nmt("compare", "run", "small", *search, *FAST, "output=page.html")
    assert ended.code == 0, ended.err
    usual = "decode.beam_size=1, on "
    assert f"translated by run: engine=torch precision=float32 {usual}" in ended.out
    assert f"translated by small: engine=ctranslate2 precision=int8 {usual}" in ended.out
    told = shown(section(parsed("page.html"), "Scores"))
    assert f"Translated by small: engine=ctranslate2 precision=int8 {usual}" in told
    search += ("engine=ctranslate2", "precision=int8")
    found = json.loads(nmt("compare", "run", "small", *search, *FAST, "--json").out)
    converted, exported = (system["seeds"][0]["cost"] for system in found["systems"])
    assert exported["size"] == Path("small/model.bin").stat().st_size == converted["size"]
    assert converted["keys"] == exported["keys"]
