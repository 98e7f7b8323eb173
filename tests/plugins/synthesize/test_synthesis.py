"""`nmt synthesize` agrees with `nmt translate` and `nmt score`, also after an interruption."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sacrebleu.metrics import BLEU, CHRF

from nmt.files import only_process
from nmt.plugins.synthesize import selection
from nmt.translation import Models, Translation, flagger

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
SEARCH = [
    "engine=torch",
    "device=cpu",
    "threads=1",
    "decode.beam_size=4",
    "decode.max_extra_length=3",
]


@pytest.fixture
def mono(tmp_path) -> list[str]:
    draw = random.Random(1)
    lines = ["", *(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(59))]
    write("mono", lines)
    return lines


def write(name: str, lines: Iterable[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def records(output: str = "out") -> list[dict]:
    return [
        json.loads(line) for line in Path(output, "translations.jsonl").read_text().splitlines()
    ]


@pytest.fixture
def make(nmt, mono, checkpoint):
    """A function that synthesizes from `mono` and returns the pairs."""

    def make(*words: str, output: str = "out", run: object = checkpoint) -> list[tuple[str, str]]:
        result = nmt("synthesize", "mono", f"run={run}", *SEARCH, f"output={output}", *words)
        assert result.code == 0, result.err
        sides = (Path(output, f"train.{side}").read_text().splitlines() for side in ("en", "de"))
        return list(zip(*sides, strict=True))

    return make


@pytest.mark.parametrize(
    "search", [[], ["decode.do_sample=true", "decode.beam_size=1", "decode.seed=3"]]
)
def test_pairs_are_lines_and_their_translations(make, nmt, mono, checkpoint, search):
    pairs = make("flagged=keep", "buffer=7", *search)
    assert (
        nmt("translate", f"run={checkpoint}", *SEARCH, *search, "input=mono", "output=hyp").code
        == 0
    )
    expected = zip(mono, Path("hyp").read_text().splitlines(), strict=True)
    assert pairs == [pair for pair in expected if all(map(str.strip, pair))]


def test_most_similar_translation_is_kept_and_flagged_pairs_dropped(make, mono, word_model):
    Path("out").mkdir()
    write("references", [f"ka lo {line}" for line in mono])
    words = ["decode.n_best=4", "reference=references"]
    chosen = {}
    for metric, scorer in (("chrf", CHRF()), ("bleu", BLEU(effective_order=True))):
        for flagged in ("drop", "keep"):
            pairs = make(*words, f"metric={metric}", f"flagged={flagged}", run=word_model)
            best = [
                max(
                    row["translations"],
                    key=lambda t, ref=line: (
                        scorer.sentence_score(t["text"], [f"ka lo {ref}"]).score
                    ),
                )
                for line, row in zip(mono, records(), strict=True)
            ]
            is_kept = [
                bool(row["text"]) and (flagged == "keep" or not row["flags"]) for row in best
            ]
            rows = zip(mono, best, is_kept, strict=True)
            assert pairs == [(line, row["text"]) for line, row, keep in rows if line and keep]
            chosen[metric, flagged] = pairs
            summary = json.loads(Path("out/summary.json").read_text())
            assert sum(summary["dropped"].values()) + summary["kept"] == summary["lines"] == 60
            assert (summary["dropped"]["flagged"] > 0) == (flagged == "drop")
            pairs_with = Counter(
                flag for line, row in zip(mono, best, strict=True) if line for flag in row["flags"]
            )
            assert summary["flags"] == pairs_with
    likeliest = [(row["source"], row["translations"][0]["text"]) for row in records()]
    assert chosen["chrf", "keep"] != [pair for pair in likeliest if all(pair)]


def test_drop_removes_the_least_likely_without_translating_again(make, nmt, word_model):
    # Random models write no tokens that a tokenizer would find again in their text.
    everything = make("flagged=keep", run=word_model)
    for name, side in zip(("sources", "targets"), zip(*everything, strict=True), strict=True):
        write(name, side)
    words = [f"run={word_model}", "source=sources", "hypothesis=targets", "format=jsonl"]
    rows = [json.loads(line) for line in nmt("score", *words).out.splitlines()]
    scores = [row["log_probability"] / row["length"] for row in rows]
    dropped = set(
        sorted(range(len(scores)), key=lambda index: scores[index])[: int(0.25 * len(everything))]
    )
    before = Path("out/translations.jsonl").stat()
    kept = make("flagged=keep", "drop=0.25", run=word_model)
    assert kept == [pair for index, pair in enumerate(everything) if index not in dropped]
    assert Path("out/translations.jsonl").stat() == before


@given(
    st.lists(st.sampled_from([-3.0, -2.5, -1.0, 0.0, float("-inf"), float("nan")])),
    st.floats(0, 0.99),
)
def test_worst_equals_a_plain_sort(scores, share):
    keyed = [(-np.inf if score != score else score, -index) for index, score in enumerate(scores)]
    expected = [-index for _, index in sorted(keyed)][: int(share * len(scores) + 1e-9)]
    assert selection.worst(np.array(scores, np.float64), share).tolist() == expected


def stop_at_thirty(models: Models) -> Callable[[str, Translation], list[str]]:
    """Like `flagger`, but interrupts the command at the thirtieth line."""
    lines = []

    def flags_or_stop(line: str, translation: Translation) -> list[str]:
        lines.append(line)
        if len(lines) > 30:
            raise KeyboardInterrupt
        return flags_of(line, translation)

    flags_of = flagger(models)
    return flags_or_stop


@pytest.fixture
def stop_early(make, monkeypatch, word_model):
    """A function that leaves a partial file in a folder."""

    def stop_early(output: str) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("nmt.translation.flagger", stop_at_thirty)
            with pytest.raises(AssertionError, match="130"):
                make("buffer=7", output=output, run=word_model)

    return stop_early


def test_interrupted_command_resumes_with_any_number_of_threads(make, stop_early, word_model):
    Path("stopped").mkdir()
    Path("stopped/.identity.json.0123abcd.nmt-tmp").touch()  # killed as it began
    stop_early("stopped")
    assert {path.name for path in Path("stopped").iterdir()} == {
        *(
            "identity.json",
            ".translations.jsonl.nmt-partial",
            ".translations.jsonl.nmt-partial.json",
            ".lock",
        )
    }
    assert make("threads=2", output="stopped", run=word_model) == make(run=word_model)
    names = {path.name for path in Path("out").iterdir()}
    assert names == {
        "identity.json",
        "translations.jsonl",
        "train.en",
        "train.de",
        "summary.json",
        ".lock",
    }
    assert names == {path.name for path in Path("stopped").iterdir()}
    assert Path("out/identity.json").read_bytes() == Path("stopped/identity.json").read_bytes()


def test_two_commands_do_not_work_in_one_folder(make, nmt, word_model):
    make(run=word_model)
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    again = ("synthesize", "mono", f"run={word_model}", *SEARCH, "output=out")
    with only_process(Path("out"), "output"):
        for keys in (), ("drop=0.5",), ("overwrite=true",):
            nmt(*again, *keys).refused("out: another nmt is using it", "output=OTHER")
        assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert len(make("drop=0.5", run=word_model)) < len(before["train.en"].splitlines())
    nmt(*again[:-1], "output=.").refused("unrelated files")
    assert not Path(".lock").exists()


def test_folders_of_an_older_nmt_are_refused_with_advice(make, nmt, stop_early, word_model):
    expected = make(output="whole", run=word_model)
    stop_early("out")
    again = ("synthesize", "mono", f"run={word_model}", *SEARCH, "output=out")
    notes = Path("out/.translations.jsonl.nmt-partial.json")
    content = json.loads(notes.read_text())
    notes.write_text(json.dumps({**content, "identity": "0123abcd"}))
    nmt(*again).refused("a stopped command has written", "overwrite=true")
    assert make("overwrite=true", run=word_model) == expected
    for other in ('"0123abcd"', "{", json.dumps({"input": "0123abcd"})):
        Path("out/identity.json").write_text(other)
        nmt(*again).refused("out has translations", "overwrite=true")
        assert make("overwrite=true", run=word_model) == expected


def test_overwrite_translates_again(make, word_model):
    expected = make("decode.beam_size=2", output="whole", run=word_model)
    make(run=word_model)
    assert make("decode.beam_size=2", "overwrite=true", run=word_model) == expected
    assert records() == records("whole")


def test_errors_are_one_line_and_leave_the_folder_usable(make, nmt, word_model, monkeypatch):
    again = ["synthesize", "mono", f"run={word_model}", *SEARCH]
    nmt(*again, "output=new", "engine=ctranslate2", "device=auto", "decode.do_sample=true").refused(
        "engine=torch"
    )
    nmt(*again, "output=new", "decode.n_best=2").refused("reference=None with decode.n_best=2")
    write("short", ["ka"])
    nmt(*again, "output=new", "reference=short", "decode.n_best=2").refused("short")
    make(output="new", run=word_model)
    for words, problem in (
        (["output=."], "output=. has unrelated files"),
        (["output=new", "decode.beam_size=2"], "a different decode.beam_size"),
        (["output=new", "input=short"], "a different input"),
    ):
        nmt(
            *again[:1], *again[2:], *words, *(() if "input=short" in words else ["input=mono"])
        ).refused(problem)
    with monkeypatch.context() as patched:  # killed before the first file of another choice
        patched.setattr(selection, "whole_file", Mock(side_effect=KeyboardInterrupt))
        assert nmt(*again, "output=new", "drop=0.5").code == 130
    assert {path.name for path in Path("new").iterdir()} == {
        "identity.json",
        "translations.jsonl",
        ".lock",
    }
    path = Path("new/translations.jsonl")
    for content in (path.read_text()[:-9], '{"source": "x", "translations": []}\n', "7\n"):
        path.write_text(content)
        nmt(*again, "output=new").refused("translations.jsonl: damaged; remove it")
    write("mono", [])
    nmt(*again, "output=empty").refused("none of the 0 pairs")
