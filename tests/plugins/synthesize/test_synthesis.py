"""Synthetic pairs are what `nmt translate` and `nmt score` say, whatever part, device or kill they come from."""

import json
import random
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, strategies as st
from preloaded import python
from sacrebleu.metrics import BLEU, CHRF

from nmt.commands import compose
from nmt.config import sources_of
from nmt.plugins.synthesize.synthesis import worst

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
SEARCH = ["engine=torch", "device=cpu", "threads=1", "decode.beam_size=4", "decode.max_extra_length=3"]


@pytest.fixture
def mono(tmp_path) -> Path:
    draw = random.Random(1)
    lines = ["", *(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(59))]
    (tmp_path / "mono").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / "mono"


@pytest.fixture
def make(nmt, mono, checkpoint):
    """Synthesises from `mono`, and gives the pairs."""

    def make(*words: str, output: str = "out", run: object = checkpoint) -> list[tuple[str, str]]:
        result = nmt("synthesise", "mono", f"run={run}", *SEARCH, f"output={output}", *words)
        assert result.code == 0, result.err
        sides = (Path(output, f"train.{side}").read_text().splitlines() for side in ("en", "de"))
        return list(zip(*sides, strict=True))

    return make


def log_probabilities(nmt, run: str, sources: list[str], targets: list[str]) -> list[float]:
    """log P per token, by `nmt score`."""
    for name, lines in (("sources", sources), ("targets", targets)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    found = nmt("score", f"run={run}", "source=sources", "hypothesis=targets", "format=jsonl").out.splitlines()
    records = [json.loads(line) for line in found]
    return [record["log_probability"] / record["length"] for record in records]


@pytest.mark.parametrize("search", [[], ["decode.do_sample=true", "decode.beam_size=1", "decode.seed=3"]])
def test_the_pairs_are_lines_and_translations_whatever_the_parts(make, nmt, mono, checkpoint, search):
    pairs = make("flagged=keep", *search)
    assert pairs == make("flagged=keep", "lines=7", *search, output="other")
    assert nmt("translate", f"run={checkpoint}", *SEARCH, *search, "input=mono", "output=hyp").code == 0
    expected = zip(mono.read_text().splitlines(), Path("hyp").read_text().splitlines(), strict=True)
    assert pairs == [pair for pair in expected if all(map(str.strip, pair))]


def test_the_best_of_several_is_the_one_most_like_its_reference(make, nmt, mono, checkpoint):
    several = [*SEARCH, "decode.n_best=4"]
    nmt("translate", f"run={checkpoint}", *several, "input=mono", "format=jsonl", "output=hyp")
    rows = [
        [each["text"] for each in json.loads(line)["translations"]] for line in Path("hyp").read_text().splitlines()
    ]
    references = [f"{row[number % len(row)]} ka" for number, row in enumerate(rows)]
    Path("references").write_text("".join(f"{line}\n" for line in references))
    chrf, bleu = CHRF(), BLEU(effective_order=True)
    for metric, scorer in (("chrf", chrf), ("bleu", bleu)):
        words = ["flagged=keep", "lines=9", "reference=references", "decode.n_best=4", f"metric={metric}"]
        pairs = make(*words, output=metric)
        best = [
            max(row, key=lambda text, ref=ref: scorer.sentence_score(text, [ref]).score)
            for row, ref in zip(rows, references, strict=True)
        ]
        expected = [pair for pair in zip(mono.read_text().splitlines(), best, strict=True) if all(pair)]
        assert pairs == expected
        assert best != [row[0] for row in rows]


@pytest.mark.parametrize("reverse", [False, True])
def test_the_worst_share_by_log_p_is_dropped(make, nmt, checkpoint, word_model, reverse):
    # Random models write no tokens that a tokenizer would find again in their text.
    other = Path(shutil.copytree(checkpoint, "other_direction"))
    about = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**about, "source": about["target"], "target": about["source"]}))
    words = ["flagged=keep", *([f"reverse={other}"] if reverse else [])]
    everything = make(*words, run=word_model)
    sources, targets = (list(side) for side in zip(*everything, strict=True))
    run, ways = (checkpoint, (targets, sources)) if reverse else (str(word_model), (sources, targets))
    scores = log_probabilities(nmt, run, *ways)
    count = int(0.25 * len(everything))
    dropped = set(sorted(range(len(scores)), key=lambda index: scores[index])[:count])
    before = {path: path.stat().st_mtime_ns for path in Path("out/parts").iterdir()}
    assert make(*words, "drop=0.25", run=word_model) == [
        pair for index, pair in enumerate(everything) if index not in dropped
    ]
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing was translated again
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["kept"] == len(everything) - count
    assert summary["least"] == pytest.approx(min(s for n, s in enumerate(scores) if n not in dropped), abs=1e-4)


@given(st.lists(st.sampled_from([-3.0, -2.5, -1.0, 0.0, float("-inf"), float("nan")])), st.floats(0, 0.99))
def test_the_worst_are_those_of_a_sort_that_prefers_earlier_lines(scores, share):
    keyed = [(-np.inf if score != score else score, -index) for index, score in enumerate(scores)]
    expected = [-index for _, index in sorted(keyed)][: int(share * len(scores) + 1e-9)]
    assert worst(np.array(scores, np.float64), share).tolist() == expected


def test_flagged_pairs_are_dropped_before_the_worst_share(make):
    kept = make()
    summary = json.loads(Path("out/summary.json").read_text())
    rows = pq.read_table("out/parts").to_pylist()
    assert summary["dropped"]["flagged"] > 0
    assert kept == [
        (r["source"], r["translation"]) for r in rows if r["source"] and r["translation"] and not r["flags"]
    ]
    assert sum(summary["dropped"].values()) + summary["kept"] == summary["lines"] == 60


def test_two_devices_write_the_same_files(make, monkeypatch):
    one = make("lines=7")
    monkeypatch.setattr("nmt.plugins.cluster.devices.device_names", lambda config: ["cpu", "cpu"])
    assert make("lines=7", "devices=2", output="two") == one
    for path in Path("out/parts").glob("*.parquet"):
        assert path.read_bytes() == (Path("two/parts") / path.name).read_bytes()


def test_a_killed_command_goes_on_and_writes_the_same_files(make, mono, checkpoint):
    words = ["synthesise", "mono", f"run={checkpoint}", *SEARCH, "output=killed", "lines=1"]
    with subprocess.Popen([python(), "-m", "nmt", *words], stderr=subprocess.PIPE) as process:
        while len(list(Path("killed/parts").glob("[0-9]*"))) < 5:
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
    assert 5 <= len(list(Path("killed/parts").glob("[0-9]*"))) < 60
    assert not Path("killed/train.en").exists()
    Path("out").mkdir()
    Path("out/._translation.json.0123abcd.nmt-tmp").touch()  # killed as it began
    assert make("lines=1", output="killed") == make("lines=1")
    names = {path.relative_to("out") for path in Path("out").rglob("*")}
    assert names == {path.relative_to("killed") for path in Path("killed").rglob("*")}
    for name in filter(lambda name: Path("out", name).is_file(), names):
        assert Path("out", name).read_bytes() == Path("killed", name).read_bytes()


@pytest.mark.parametrize("kind", ["back_translation", "distillation"])
def test_the_next_commands_take_the_pairs_and_the_vocabulary_of_the_teacher(nmt, mono, finished, kind):
    words = [f"kind={kind}", *(["tag=BT"] if kind == "back_translation" else [])]
    search = [*SEARCH, "decode.min_length=2", "flagged=keep"]
    result = nmt("synthesise", "mono", f"run={finished}", *search, "output=my bt", *words)
    prepare, train = (line for line in result.out.splitlines() if line.startswith("nmt "))
    config, settings = (
        compose("preprocess", shlex.split(prepare)[2:]),
        yaml.safe_load((finished / "config.yaml").read_text()),
    )
    if kind == "distillation":
        assert (config.data.train, config.data.source, config.data.target) == (["my bt/train"], "en", "de")
        assert config.init == str(finished)
        return
    sources = sources_of(config.data)
    assert (config.data.source, config.data.target) == ("de", "en")
    assert [source.data.tag for source in sources] == [None, "<BT>"]
    assert sources[1].data.train == ["my bt/train"]
    for key in ("kind", "vocabulary_size"):
        assert getattr(config.tokenizer, key) == settings["tokenizer"][key]
    assert train == f"nmt train 'data/my bt' model={settings['model']['name']}"


def test_parts_are_one_table_whatever_their_flags(make, monkeypatch):
    monkeypatch.setattr(
        "nmt.plugins.synthesize.synthesis.flagger", lambda config: lambda line, found: ["number"] if line == "x" else []
    )
    Path("mono").write_text("ka\nlo\nx\nmi\n")
    make("lines=2", "flagged=keep")
    assert pq.read_table("out/parts").column("flags").to_pylist() == [[], [], ["number"], []]


def test_pairs_that_were_not_written_to_their_end_are_not_there(make, monkeypatch):
    make("flagged=keep")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nmt.plugins.synthesize.synthesis.kept_pairs", stop)
    with pytest.raises(AssertionError, match="130"):
        make("flagged=keep", "drop=0.5")
    assert not any(Path("out", name).exists() for name in ("train.en", "train.de", "summary.json"))


def test_a_damaged_part_is_named_and_a_refused_search_claims_no_folder(make, nmt, checkpoint):
    make("lines=20")
    part = sorted(Path("out/parts").iterdir())[1]
    part.write_bytes(b"")
    again = ["synthesise", "mono", f"run={checkpoint}", *SEARCH]
    found = nmt(*again, "output=out", "lines=20")
    assert (found.code, found.err.splitlines()[1:]) == (
        2,
        [f"nmt: {part.resolve()}: damaged; remove it, and the same command writes it again"],
    )
    nmt(*again, "output=new", "engine=ctranslate2", "device=auto", "decode.do_sample=true").refused("engine=torch")
    assert not any(Path("new").iterdir())
    Path("empty").touch()
    nmt("synthesise", "empty", f"run={checkpoint}", *SEARCH, "output=e").refused("it is empty")


def test_mistakes_are_named(make, nmt, mono, checkpoint):
    make()
    for words, named in (
        (["output=out", "decode.beam_size=2"], "output=out holds a translation with other decode"),
        (["output=new", "decode.n_best=2"], "reference=None with decode.n_best=2"),
        (["output=new", "tag=s"], "tag='<s>'"),
        (["output=new", "kind=copy"], "kind=copy"),
        (["output=new", "kind=distillation", "tag=BT"], "tag: of back-translations"),
        (["output=new", f"reverse={checkpoint}"], "pass a model from de to en"),
        (["output=new", "drop=1"], "drop=1"),
        (["output=new", "format=text"], "unknown key format"),
        ([], "output: a value is needed"),
        (["output=new", "reference=out/train.de", "decode.n_best=2"], "they are not parallel"),
        (["output=.", "lines=5"], "output=. holds other files"),
    ):
        nmt("synthesise", "mono", f"run={checkpoint}", *SEARCH, *words).refused(named)
