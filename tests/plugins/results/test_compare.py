"""`nmt compare`: names of systems, numbers, exit code and page."""

import base64
import hashlib
import json
import random
import shutil
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nmt as package
from nmt.extensions import EngineEntry
from nmt.registry import entries_of
from tests.conftest import Outcome

FAST = ("resamples=100", "trials=100")
NO_PAGE = "output=null"


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def with_files(words: list[str], files: list[str]) -> list[str]:
    """Words in which FILES stands for the options of the files."""
    options = []
    for word in words:
        if word == "FILES":
            options += files
        else:
            options.append(word)
    return options


def read(name: str) -> list[str]:
    return Path(name).read_text().splitlines()


def random_references() -> list[str]:
    generator = random.Random(3)
    words = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    references = []
    for number in range(80):
        text = " ".join(generator.choices(words, k=generator.randint(3, 12)))
        references.append(f"{text} {number}.")
    return references


def with_mistakes(line: str) -> str:
    return line.replace("zwei", "x").replace("acht", "y").replace("neun", "z")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options for `source` and `reference`, beside the translations `good` and `bad`."""
    monkeypatch.chdir(tmp_path)
    references = random_references()
    write("source", [line.upper() for line in references])
    write("reference", references)
    write("good", [line.replace("zwei", "drei") for line in references])
    write("bad", [with_mistakes(line) for line in references])
    return ["source=source", "reference=reference", *FAST]


@pytest.mark.slow
def test_comparison_of_files_as_json(nmt, files):
    outcome = nmt("compare", "good", "bad", *files, "fail_if=worse", "--json")
    assert outcome.code == 0, outcome.err
    tree = json.loads(outcome.out)
    assert tree["seed"] == 12345
    assert tree["lines"] == 80
    assert tree["first_is_worse"] is False
    for system in tree["systems"]:
        assert [seed["cost"] for seed in system["seeds"]] == [None]
    [comparison] = tree["comparisons"]
    assert comparison["system"] == "bad"
    assert comparison["against"] == "good"
    bleu = comparison["metrics"]["bleu"]
    assert bleu["significant"] is True
    assert bleu["better"] is False


@pytest.mark.slow
def test_comparison_in_python_equals_the_command(nmt, files):
    tree = json.loads(nmt("compare", "good", "bad", *files, "fail_if=worse", "--json").out)
    del tree["buckets"]
    keys = {"resamples": 100, "trials": 100}
    by_files = package.compare(
        ["good", Path("bad")], source="source", reference="reference", **keys
    )
    assert by_files == tree
    assert str(by_files).startswith("system")
    lines = {"good": read("good"), "bad": read("bad")}
    by_lines = package.compare(lines, reference=read("reference"), **keys)
    assert by_lines["comparisons"] == by_files["comparisons"]


def test_comparison_in_python_needs_equally_many_lines(files):
    lines = {"good": read("good"), "bad": read("bad")[1:]}
    with pytest.raises(package.NMTError, match="bad has 79 lines but the reference has 80"):
        package.compare(lines, reference=read("reference"))


def test_comparison_of_files_as_text(nmt, files):
    text = nmt("compare", "good", "bad", *files, "seed=3").out
    tests = "(paired bootstrap p <= 0.0099, approximate randomization p <= 0.0099)"
    assert "bad against good: BLEU -" in text
    assert f"significantly worse {tests}" in text
    assert "seed:3|" in text
    assert "sentences/s" not in text  # no model was compared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["base=good", "tuned=bad"], ["base", "tuned"]),
        (["base=good", "bad"], ["base", "bad"]),
        (["base=[good]", "seeds=[bad]"], ["base", "seeds"]),
        (["new=./good", "old=./bad"], ["new", "old"]),
        # `b` is another toolkit's beam size, and `same` resembles `resamples`.
        (["b=good", "same=./bad"], ["b", "same"]),
    ],
)
def test_names_of_systems(nmt, files, words, names):
    outcome = nmt("compare", *words, *files, NO_PAGE, "--json", "metrics=[chrf]")
    assert outcome.code == 0, outcome.err
    assert [system["name"] for system in json.loads(outcome.out)["systems"]] == names


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["bad", "refrence=reference"], "did you mean reference?"),
        (["bad", "ref=reference"], "ref=reference: use reference=reference"),
        (["tuned=runs/none", "FILES"], "runs/none: no such file or folder"),
        (["b=runs/none", "FILES"], "runs/none: no such file or folder"),
        (["bad", "b=8", "FILES"], "b=8: use decode.beam_size=8"),
        (["bad", "FILES", "lines=5"], "unknown key lines"),
    ],
)
def test_mistyped_key_is_not_a_system(nmt, files, words, problem):
    nmt("compare", "good", *with_files(words, files)).refused(problem)


def test_exit_code_is_1_only_with_fail_if_and_a_significantly_worse_first_system(nmt, files):
    words = ["bad", "good", *files, NO_PAGE, "metrics=[ter]"]
    outcome = nmt("compare", *words, "fail_if=worse")
    assert outcome.code == 1
    assert "nmt: bad is significantly worse than good (fail_if=worse)" in outcome.err
    assert nmt("compare", *words).code == 0
    assert not Path("compare.html").exists()


def test_a_difference_that_one_test_rejects_is_not_significant(nmt, files):
    first, *others = read("good")
    write("nearly", [first.replace("e", "ee"), *others])
    outcome = nmt("compare", "nearly", "good", *files, "fail_if=worse", "metrics=bleu")
    verdict = "not significantly different: only the approximate randomization has p < 0.05"
    assert outcome.code == 0
    assert f"{verdict} (paired" in outcome.out
    assert verdict in shown(parsed("compare.html"))


def test_nothing_is_significant_with_fewer_than_50_lines(nmt, files):
    for name in ("source", "reference", "good", "bad"):
        write(name, read(name)[:49])
    outcome = nmt("compare", "bad", "good", *files, "fail_if=worse", "metrics=[bleu,chrf++,ter]")
    assert outcome.code == 0, outcome.err
    assert "fail_if=worse cannot fail with fewer than 50 lines" in outcome.err
    assert "chrF2++, paired bootstrap: nrefs:1|" in outcome.out
    assert "\nno *: tests need 50 lines, but there are only 49;" in outcome.out
    assert outcome.out.count("*") == 1
    assert " p " not in outcome.out
    assert stars_in(parsed("compare.html")) == []


def parsed(page: str) -> ET.Element:
    text = Path(page).read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def shown(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def section(root: ET.Element, title: str) -> ET.Element:
    return next(element for element in root.iter("section") if element.findtext("h2") == title)


def stars_in(element: ET.Element) -> list[ET.Element]:
    """The marks of significant differences."""
    return [bold for bold in element.iter("b") if bold.get("class") == "star"]


def tables_in(element: ET.Element) -> dict[str, ET.Element]:
    """The tables of a section, by their titles."""
    titles = [title.text for title in element.iter("h3")]
    return dict(zip(titles, element.iter("table"), strict=True))


def row_of(table: ET.Element, label: str) -> list[ET.Element]:
    """The cells of the only row with this label."""
    [row] = [row for row in table.iter("tr") if row.findtext("th") == label]
    return row.findall("td")


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def without_last_word(line: str) -> str:
    words, _ = line.rsplit(" ", 1)
    return words


@pytest.fixture
def page(nmt, files) -> tuple[ET.Element, dict[str, Any]]:
    """The page and the numbers of a system that lacks the last word of each tenth line."""
    lines = read("reference")
    lines[::10] = map(without_last_word, lines[::10])
    write("broken", lines)
    outcome = nmt("compare", "reference", "broken", *files, "output=page.html", "--json")
    assert outcome.code == 0, outcome.err
    assert "the page is page.html" in outcome.err
    return parsed("page.html"), json.loads(outcome.out)


SECTIONS = ["Scores", "Buckets", "Lines: broken against reference"]


def test_page_shows_the_lines_with_faults(page):
    root, _ = page
    assert [element.findtext("h2") for element in root.iter("section")] == SECTIONS
    references = read("reference")
    numbers = set()
    flagged = set()
    for article in section(root, SECTIONS[2]).iter("article"):
        number = int(article.get("data-line"))
        numbers.add(number)
        marked = "".join(mark.text for mark in article.iter("mark"))
        _, last_word = references[number - 1].rsplit(" ", 1)
        assert marked == last_word
        if "flag number" in shown(article):
            flagged.add(number)
    assert numbers == {1, 11, 21, 31, 41, 51, 61, 71}
    # Smaller numbers may be written in words.
    assert flagged >= {41, 51, 61, 71}


def test_page_shows_buckets_with_intervals_and_marks_significant_differences(page):
    root, tree = page
    tables = tables_in(section(root, "Buckets"))
    assert tables.keys() == {"Faults", "Words in the source"}
    for bucket in tree["buckets"]:
        cells = row_of(tables[bucket["title"]], bucket["label"])
        assert shown(cells[0]) == f"{bucket['count']:,}"
        [gap] = bucket["gaps"]
        assert shown(cells[3]).endswith(f"{signed(gap['low'])} to {signed(gap['high'])}")
        is_worse = gap["significant"] and not gap["better"]
        assert (cells[3].get("class") == "number worse") == is_worse
    metrics = tree["comparisons"][0]["metrics"].values()
    count = sum(metric["significant"] for metric in metrics)
    assert count > 0
    assert len(stars_in(section(root, "Scores"))) == count


HOSTILE = (
    "</title></style></script><script>alert(1)</script><img src='http://x/'>\0\u202e\" onload=\"x"
)


def content_security_policy(root: ET.Element) -> str:
    policies = []
    for element in root.iter("meta"):
        if element.get("http-equiv") == "Content-Security-Policy":
            policies.append(element.get("content"))
    [policy] = policies
    return policy


def assert_loads_nothing(root: ET.Element) -> None:
    for element in root.iter():
        assert "src" not in element.attrib
        assert not [key for key in element.attrib if key.startswith("on")]
        assert element.get("href", "data:,") == "data:,"


@pytest.mark.slow
def test_page_loads_nothing_and_runs_only_its_script(nmt, files):
    for name in ("source", "reference", "good"):
        write(name, [f"{HOSTILE} {number}" for number in range(80)])
    bad = "a<script>"
    write(bad, [f"{number} {HOSTILE} {HOSTILE}" for number in range(80)])
    assert nmt("compare", "good", bad, *files, "--json").code == 0
    root = parsed("compare.html")
    assert_loads_nothing(root)
    [script] = root.iter("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    styles = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert content_security_policy(root) == f"{styles}; script-src 'sha256-{digest}'"
    assert shown(root).count("<script>alert(1)</script>") > 10


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["bad", "FILES", "output=nowhere/x.html"], ["output=nowhere"]),
        (["bad", "FILES", "output=bad"], ["output=bad", "must end in .html"]),
        ([], ["at least two", "nmt compare runs/new runs/old"]),
        (["new=[good]", "FILES"], ["good", "given twice"]),
        (["new=[bad,]", "FILES"], ["no such file"]),
        (["bad"], ["good: not a run", "reference=FILE"]),
        (["bad", "source=source"], ["reference=FILE"]),
        (["bad", "metrics=[bleu,bleu]"], ["metrics: "]),
        (["short", "FILES"], ["short", "reference"]),
        (["empty", "FILES"], ["empty: neither a run nor a model directory"]),
    ],
)
def test_mistakes_are_one_line(nmt, files, words, problem):
    write("short", ["x"])
    Path("empty").mkdir()
    nmt("compare", "good", *with_files(words, files)).refused(*problem)


GREEDY = ("decode=greedy", "decode.max_extra_length=5")
TORCH_KEYS = "engine=torch precision=float32 decode.beam_size=1 decode.max_extra_length=5"
INT8_KEYS = "engine=ctranslate2 precision=int8 decode.beam_size=1 decode.max_extra_length=5"


class Commands:
    """Commands on a run and a test set of `test.en` and `test.de`."""

    def __init__(self, nmt: Callable[..., Outcome], prepared: Path) -> None:
        self.nmt = nmt
        self.prepared = prepared

    def succeed(self, *words: str) -> Outcome:
        outcome = self.nmt(*words, *GREEDY)
        assert outcome.code == 0, outcome.err
        return outcome

    def translate(self, output: str, *words: str) -> bytes:
        self.succeed("translate", "run", "input=test.en", f"output={output}", *words)
        return Path(output).read_bytes()

    def cite(self, output: str) -> zipfile.ZipFile:
        texts = ("source=test.en", "reference=test.de")
        self.succeed("cite", "run", *texts, f"output={output}")
        return zipfile.ZipFile(output)

    def compare(self, *words: str) -> list[dict[str, Any]]:
        """The first seed of every system."""
        outcome = self.succeed("compare", *words, *FAST, "device=cpu", "--json")
        tree = json.loads(outcome.out)
        assert tree["test_set"] == f"test set of {self.prepared}"
        return [system["seeds"][0] for system in tree["systems"]]


@pytest.fixture
def commands(nmt, finished, toy, tmp_path, monkeypatch) -> Commands:
    """The test set has protected items, and a line longer than those of the training."""
    from nmt.data import PreparedCorpus

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(finished, "run")
    prepared = Path(toy[-1].removeprefix("prepared="))
    text = (prepared / "test.en").read_text().splitlines()
    lines = [f"{line} %d {line} http://a.org/{number}" for number, line in enumerate(text)]
    lines.append(" ".join(text))
    for name in ("test.en", "test.de"):
        write(name, lines)
    monkeypatch.setattr(PreparedCorpus, "text", lambda self, split: (lines, lines))
    monkeypatch.setattr(PreparedCorpus, "tags", lambda self, split: [""] * len(lines))
    return Commands(nmt, prepared)


@pytest.mark.slow
def test_all_commands_give_the_same_translations_with_torch(commands):
    translation = commands.translate("out.de")
    assert translation != commands.translate("bare.de", "protect=none")
    with commands.cite("cited.zip") as bundle:
        assert bundle.read("hypotheses.de") == translation
    [bleu, *_] = json.loads(commands.nmt("score", "out.de", "test.de", "--json").out)
    commands.succeed("report", "run", "split=test", "sentences=null")
    assert f"{bleu['value']:.2f}" in shown(section(parsed("run/report.html"), "Scores"))
    from_model, from_file = commands.compare("run", "out.de")
    assert from_model["scores"] == from_file["scores"]
    assert from_model["scores"]["bleu"]["value"] == bleu["value"]
    assert_cost_of_model(from_model["cost"])


def assert_cost_of_model(cost: dict[str, Any]) -> None:
    assert cost["lines"] == len(read("test.en"))
    assert cost["size"] == Path("run/model/model.safetensors").stat().st_size
    assert 2**20 < cost["memory"] < 2**36
    assert cost["seconds"] > 0
    assert cost["keys"] == TORCH_KEYS


@pytest.fixture
def ctranslate2_by_default(monkeypatch):
    """Let `engine=auto` choose CTranslate2, and convert models in this process."""
    pytest.importorskip("ctranslate2")
    from nmt import preparation
    from nmt.translation import load

    def submit(work, *arguments):
        return SimpleNamespace(result=lambda: work(*arguments))

    def pool(count, **options):
        return nullcontext(SimpleNamespace(submit=submit))

    def engines(precision):
        return list(entries_of(EngineEntry).values())[::-1]

    monkeypatch.setattr(preparation, "worker_pool", pool)
    monkeypatch.setattr(load, "automatic_engines", engines)


@pytest.mark.slow
def test_all_commands_give_the_same_translations_with_ctranslate2(commands, ctranslate2_by_default):
    translation = commands.translate("fast.de")
    with commands.cite("fast.zip") as bundle:
        assert bundle.read("hypotheses.de") == translation
        assert json.loads(bundle.read("bundle.json"))["computation"]["engine"] == "ctranslate2"
    from_model, from_file = commands.compare("run", "fast.de")
    assert from_model["scores"] == from_file["scores"]


def test_comparison_with_int8_reports_its_size_and_options(
    commands, ctranslate2_by_default, tmp_path
):
    converted, _ = commands.compare("run", "test.de", "precision=int8")
    [weights] = (tmp_path / "cache/nmt/ctranslate2").glob("*-int8/model.bin")
    assert converted["cost"]["size"] == weights.stat().st_size
    assert converted["cost"]["keys"] == INT8_KEYS
    scores = shown(section(parsed("compare.html"), "Scores"))
    assert f"Translated with run: {INT8_KEYS}, on " in scores
