"""`nmt compare`: names of systems, numbers, exit code and page."""

import base64
import hashlib
import json
import random
import shutil
import xml.etree.ElementTree as ET
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nmt as package
from nmt.extensions import EngineEntry
from nmt.registry import entries_of

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
    references = [
        f"{' '.join(generator.choices(words, k=generator.randint(3, 12)))} {n}." for n in range(80)
    ]
    write("source", [line.upper() for line in references])
    write("reference", references)
    write("good", [line.replace("zwei", "drei") for line in references])
    write(
        "bad",
        [
            line.replace("zwei", "x").replace("acht", "y").replace("neun", "z")
            for line in references
        ],
    )
    return ["source=source", "reference=reference", *FAST]


def test_files_as_json_and_as_text(nmt, files):
    ended = nmt("compare", "good", "bad", *files, "fail_if=worse", "--json")
    assert ended.code == 0, ended.err
    tree, references = json.loads(ended.out), Path("reference").read_text().splitlines()
    assert [seed["cost"] for system in tree["systems"] for seed in system["seeds"]] == [None, None]
    (comparison,) = tree["comparisons"]
    assert (comparison["system"], comparison["against"]) == ("bad", "good")
    bleu = comparison["metrics"]["bleu"]
    assert (bleu["significant"], bleu["better"]) == (True, False)
    assert (tree["seed"], tree["lines"], tree["first_is_worse"]) == (12345, 80, False)
    keys = {"resamples": 100, "trials": 100}
    result = package.compare(["good", Path("bad")], source="source", reference="reference", **keys)
    assert result == {key: value for key, value in tree.items() if key != "buckets"}
    lines = {name: Path(name).read_text().splitlines() for name in ("good", "bad")}
    again = package.compare(lines, reference=references, **keys)
    assert (again["comparisons"], str(result)[:6]) == (result["comparisons"], "system")
    with pytest.raises(package.NMTError, match="bad has 79 lines but the reference has 80"):
        package.compare({**lines, "bad": lines["bad"][1:]}, reference=references)
    text = nmt("compare", "good", "bad", *files, "seed=3").out
    assert "bad against good: BLEU -" in text
    assert (
        "significantly worse (paired bootstrap p <= 0.0099, approximate randomization p <= 0.0099)"
        in text
    )
    assert "seed:3|" in text
    assert "sentences/s" not in text  # no model was compared


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
    ended = nmt("compare", *words, *files, NO_PAGE, "--json", "metrics=[chrf]")
    assert ended.code == 0, ended.err
    assert [system["name"] for system in json.loads(ended.out)["systems"]] == names


def test_mistyped_key_is_not_a_system(nmt, files):
    nmt("compare", "good", "bad", "refrence=reference").refused("did you mean reference?")
    nmt("compare", "good", "bad", "ref=reference").refused("ref=reference: use reference=reference")
    nmt("compare", "good", "tuned=runs/none", *files).refused("runs/none: no such file or folder")
    nmt("compare", "good", "b=runs/none", *files).refused("runs/none: no such file or folder")
    nmt("compare", "good", "bad", "b=8", *files).refused("b=8: use decode.beam_size=8")
    nmt("compare", "good", "bad", "lines=5", *files).refused("unknown key lines")


def test_exit_code_is_1_only_if_first_is_significantly_worse(nmt, files):
    ended = nmt("compare", "bad", "good", *files, NO_PAGE, "fail_if=worse", "metrics=[ter]")
    assert ended.code == 1
    assert "nmt: bad is significantly worse than good (fail_if=worse)" in ended.err
    assert nmt("compare", "bad", "good", *files, NO_PAGE, "metrics=[ter]").code == 0
    assert not Path("compare.html").exists()
    lines = Path("good").read_text().splitlines()
    write("nearly", [lines[0].replace("e", "ee"), *lines[1:]])
    ended = nmt("compare", "nearly", "good", *files, "fail_if=worse", "metrics=bleu")
    verdict = "not significantly different: only the approximate randomization has p < 0.05"
    assert (ended.code, f"{verdict} (paired" in ended.out) == (0, True)
    assert verdict in shown(parsed("compare.html"))
    for name in ("source", "reference", "good", "bad"):
        write(name, Path(name).read_text().splitlines()[:49])
    ended = nmt("compare", "bad", "good", *files, "fail_if=worse", "metrics=[bleu,chrf++,ter]")
    assert ended.code == 0, ended.err
    assert "fail_if=worse cannot fail with fewer than 50 lines" in ended.err
    assert "chrF2++, paired bootstrap: nrefs:1|" in ended.out
    assert "\nno *: tests need 50 lines, but there are only 49;" in ended.out
    assert (ended.out.count("*"), " p " in ended.out) == (1, False)
    assert not [star for star in parsed("compare.html").iter("b") if star.get("class") == "star"]


def parsed(page: str) -> ET.Element:
    text = Path(page).read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def shown(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def section(root: ET.Element, title: str) -> ET.Element:
    return next(element for element in root.iter("section") if element.findtext("h2") == title)


def test_page_has_faults_and_buckets_with_intervals(nmt, files):
    lines = Path("reference").read_text().splitlines()
    write(
        "broken",
        [line.rsplit(" ", 1)[0] if number % 10 == 0 else line for number, line in enumerate(lines)],
    )
    ended = nmt("compare", "reference", "broken", *files, "output=page.html", "--json")
    assert ended.code == 0, ended.err
    assert "the page is page.html" in ended.err
    root, tree = parsed("page.html"), json.loads(ended.out)
    titles = ["Scores", "Buckets", "Lines: broken against reference"]
    assert [element.findtext("h2") for element in root.iter("section")] == titles
    articles = list(section(root, titles[2]).iter("article"))
    assert {int(article.get("data-line")) for article in articles} == {
        1,
        11,
        21,
        31,
        41,
        51,
        61,
        71,
    }
    for article in articles:
        marked = "".join(mark.text for mark in article.iter("mark"))
        assert marked == lines[int(article.get("data-line")) - 1].rsplit(" ", 1)[1]
    for line in (41, 51, 61, 71):  # smaller numbers may be there in words
        assert any("flag number" in shown(a) for a in articles if a.get("data-line") == str(line))
    buckets = section(root, "Buckets")
    tables = dict(zip([h.text for h in buckets.iter("h3")], buckets.iter("table"), strict=True))
    assert tables.keys() == {"Faults", "Words in the source"}
    for row in tree["buckets"]:
        (line,) = (
            tr for tr in tables[row["title"]].iter("tr") if tr.findtext("th") == row["label"]
        )
        cells = [shown(cell) for cell in line.findall("td")]
        assert cells[0] == f"{row['count']:,}"
        (gap,) = row["gaps"]
        low, high = (f"{gap[end]:+.1f}".replace("-", "\u2212") for end in ("low", "high"))
        assert cells[3].endswith(f"{low} to {high}")
        assert (line.findall("td")[3].get("class") == "number worse") == (
            gap["significant"] and not gap["better"]
        )
    stars = [star for star in section(root, "Scores").iter("b") if star.get("class") == "star"]
    assert (
        len(stars) == sum(d["significant"] for d in tree["comparisons"][0]["metrics"].values()) > 0
    )


HOSTILE = (
    "</title></style></script><script>alert(1)</script><img src='http://x/'>\0\u202e\" onload=\"x"
)


def test_page_loads_nothing_and_runs_only_its_script(nmt, files):
    for name in ("source", "reference", "good"):
        write(name, [f"{HOSTILE} {number}" for number in range(80)])
    write(bad := "a<script>", [f"{number} {HOSTILE} {HOSTILE}" for number in range(80)])
    assert nmt("compare", "good", bad, *files, "--json").code == 0
    root = parsed("compare.html")
    for element in root.iter():
        assert not [key for key in element.attrib if key.startswith("on") or key == "src"]
        assert element.get("href", "data:,") == "data:,"
    (script,) = root.iter("script")
    (policy,) = (
        m.get("content")
        for m in root.iter("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert (
        policy
        == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    )
    assert shown(root).count("<script>alert(1)</script>") > 10


def test_mistakes_are_one_line(nmt, files):
    nmt("compare", "good", "bad", *files, "output=nowhere/x.html").refused("output=nowhere")
    nmt("compare", "good", "bad", *files, "output=bad").refused("output=bad", "must end in .html")
    nmt("compare", "good").refused("at least two", "nmt compare runs/new runs/old")
    nmt("compare", "good", "new=[good]", *files).refused("good", "given twice")
    nmt("compare", "good", "new=[bad,]", *files).refused("no such file")
    nmt("compare", "good", "bad").refused("good: not a run", "reference=FILE")
    nmt("compare", "good", "bad", "source=source").refused("reference=FILE")
    nmt("compare", "good", "bad", "metrics=[bleu,bleu]").refused("metrics: ")
    write("short", ["x"])
    nmt("compare", "good", "short", *files).refused("short", "reference")
    Path("empty").mkdir()
    nmt("compare", "good", "empty", *files).refused("empty: neither a run nor a model directory")


def test_all_commands_translate_alike(nmt, finished, toy, tmp_path, monkeypatch):
    """Also for lines with protected items, and for a line longer than those of the training."""
    pytest.importorskip("ctranslate2")
    from nmt import preparation
    from nmt.data import PreparedCorpus
    from nmt.translation import load

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(finished, "run")
    prepared = Path(toy[-1].removeprefix("prepared="))
    text = (prepared / "test.en").read_text().splitlines()
    sources = [f"{line} %d {line} http://a.org/{number}" for number, line in enumerate(text)] + [
        " ".join(text)
    ]
    for name in ("test.en", "test.de"):
        write(name, sources)
    monkeypatch.setattr(PreparedCorpus, "text", lambda self, split: (sources, sources))
    search = ("decode=greedy", "decode.max_extra_length=5")
    assert nmt("translate", "run", "input=test.en", "output=out.de", *search).code == 0
    assert (
        nmt("translate", "run", "input=test.en", "output=bare.de", "protect=none", *search).code
        == 0
    )
    assert Path("out.de").read_text() != Path("bare.de").read_text()
    [bleu, *_] = json.loads(nmt("score", "out.de", "test.de", "--json").out)
    assert (
        nmt("cite", "run", "source=test.en", "reference=test.de", "output=cited.zip", *search).code
        == 0
    )
    with zipfile.ZipFile("cited.zip") as bundle:
        assert bundle.read("hypotheses.de") == Path("out.de").read_bytes()
    assert nmt("report", "run", "split=test", "sentences=null", *search).code == 0
    assert f"{bleu['value']:.2f}" in shown(section(parsed("run/report.html"), "Scores"))

    def compared(*words: str) -> list[dict[str, Any]]:
        """The first seed of every system."""
        ended = nmt("compare", *words, *search, *FAST, "device=cpu", "--json")
        assert ended.code == 0, ended.err
        tree = json.loads(ended.out)
        assert tree["test_set"] == f"test set of {prepared}"
        return [system["seeds"][0] for system in tree["systems"]]

    by_torch, from_file = compared("run", "out.de")
    assert by_torch["scores"] == from_file["scores"]
    assert by_torch["scores"]["bleu"]["value"] == bleu["value"]
    cost = by_torch["cost"]
    assert (cost["lines"], cost["size"]) == (
        len(sources),
        Path("run/model/model.safetensors").stat().st_size,
    )
    assert 2**20 < cost["memory"] < 2**36
    assert cost["seconds"] > 0
    assert (
        cost["keys"]
        == "engine=torch precision=float32 decode.beam_size=1 decode.max_extra_length=5"
    )
    pool = SimpleNamespace(submit=lambda work, *args: SimpleNamespace(result=lambda: work(*args)))
    monkeypatch.setattr(
        preparation, "worker_pool", lambda count, **options: nullcontext(pool)
    )  # in this process
    monkeypatch.setattr(
        load, "automatic_engines", lambda precision: [*entries_of(EngineEntry).values()][::-1]
    )
    assert nmt("translate", "run", "input=test.en", "output=fast.de", *search).code == 0
    assert (
        nmt("cite", "run", "source=test.en", "reference=test.de", "output=fast.zip", *search).code
        == 0
    )
    with zipfile.ZipFile("fast.zip") as bundle:
        assert bundle.read("hypotheses.de") == Path("fast.de").read_bytes()
        assert json.loads(bundle.read("bundle.json"))["computation"]["engine"] == "ctranslate2"
    converted, from_file = compared("run", "fast.de")
    assert converted["scores"] == from_file["scores"]
    converted, _ = compared("run", "out.de", "precision=int8")
    [weights] = (tmp_path / "cache/nmt/ctranslate2").glob("*-int8/model.bin")
    assert converted["cost"]["size"] == weights.stat().st_size
    keys = "engine=ctranslate2 precision=int8 decode.beam_size=1 decode.max_extra_length=5"
    assert converted["cost"]["keys"] == keys
    assert f"Translated with run: {keys}, on " in shown(section(parsed("compare.html"), "Scores"))
