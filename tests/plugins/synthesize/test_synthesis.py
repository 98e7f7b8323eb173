"""Synthetic pairs are what `nmt translate` and `nmt score` say, whatever part, device or kill they come from."""

import json
import pickle
import random
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from sacrebleu.metrics import BLEU, CHRF

from nmt.plugins.cluster import blocks, devices
from nmt.plugins.synthesize.synthesis import part_writer, worst
from nmt.translation import load_translator

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


def test_the_worst_share_by_log_p_is_dropped(make, nmt, word_model):
    # Random models write no tokens that a tokenizer would find again in their text.
    everything = make("flagged=keep", run=word_model)
    for name, side in zip(("sources", "targets"), zip(*everything, strict=True), strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in side))
    words = [f"run={word_model}", "source=sources", "hypothesis=targets", "format=jsonl"]
    records = [json.loads(line) for line in nmt("score", *words).out.splitlines()]
    scores = [record["log_probability"] / record["length"] for record in records]
    dropped = set(sorted(range(len(scores)), key=lambda index: scores[index])[: int(0.25 * len(everything))])
    before = {path: path.stat().st_mtime_ns for path in Path("out/parts").iterdir()}
    assert make("flagged=keep", "drop=0.25", run=word_model) == [
        pair for index, pair in enumerate(everything) if index not in dropped
    ]
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing was translated again
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["kept"] == len(everything) - len(dropped)
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


def test_a_pool_of_devices_writes_the_same_files(make, monkeypatch):
    one = make("lines=7")

    @contextmanager
    def on_devices(config):
        monkeypatch.setattr(devices, "worker_config", config, raising=False)
        monkeypatch.setattr(devices, "worker_translator", lambda: load_translator(config.translator, print))
        yield SimpleNamespace(run=lambda task, rows: map(pickle.loads(pickle.dumps(task)), rows))

    monkeypatch.setattr(devices, "on_devices", on_devices)
    part_writer.cache_clear()
    assert make("lines=7", "devices=2", output="two") == one
    for path in Path("out/parts").glob("*.parquet"):
        assert path.read_bytes() == (Path("two/parts") / path.name).read_bytes()


def test_an_interrupted_command_goes_on_and_writes_the_same_files(make, monkeypatch):
    write, parts = blocks.write_block, []

    def stop_at_five(folder, block, *rest, **more):
        if len(parts) == 5:
            raise KeyboardInterrupt
        parts.append(block)
        write(folder, block, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(blocks, "write_block", stop_at_five)
        with pytest.raises(AssertionError, match="130"):
            make("lines=7", output="stopped")
    assert len(list(Path("stopped/parts").glob("[0-9]*"))) == 5
    assert not Path("stopped/train.en").exists()
    Path("out").mkdir()
    Path("out/._translation.json.0123abcd.nmt-tmp").touch()  # killed as it began
    assert make("lines=7", output="stopped") == make("lines=7")
    names = {path.relative_to("out") for path in Path("out").rglob("*")}
    assert names == {path.relative_to("stopped") for path in Path("stopped").rglob("*")}
    for name in filter(lambda name: Path("out", name).is_file(), names):
        assert Path("out", name).read_bytes() == Path("stopped", name).read_bytes()


def test_parts_are_one_table_whatever_their_flags(make, monkeypatch):
    monkeypatch.setattr(
        "nmt.plugins.synthesize.synthesis.flagger", lambda config: lambda line, found: ["number"] if line == "x" else []
    )
    Path("mono").write_text("ka\nlo\nx\nmi\n")
    make("lines=2", "flagged=keep")
    assert pq.read_table("out/parts").column("flags").to_pylist() == [[], [], ["number"], []]


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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["output=new", "decode.n_best=2"], "reference=None with decode.n_best=2"),
        (["output=new", "format=text"], "unknown key format"),
        (["output=new", "reference=short", "decode.n_best=2"], "they are not parallel"),
        (["output=.", "lines=5"], "output=. holds other files"),
        (["output=claimed"], "output=claimed holds a translation with other"),
    ],
)
def test_mistakes_are_named(nmt, mono, checkpoint, words, named):
    Path("short").write_text("ka\n")
    Path("claimed").mkdir()
    Path("claimed/_translation.json").write_text('{"lines": 2000}\n')
    nmt("synthesise", "mono", f"run={checkpoint}", *SEARCH, *words).refused(named)
