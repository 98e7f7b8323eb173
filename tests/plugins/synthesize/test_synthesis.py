"""`nmt synthesize` agrees with `nmt translate` and `nmt score`, even after an interruption."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sacrebleu.metrics import BLEU, CHRF

from nmt.files import only_process
from nmt.plugins.synthesize import selection
from nmt.translation import Direction, Models, Translation, flagger

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
    """The lines of the file `mono`: an empty one and 59 sentences."""
    draw = random.Random(1)
    lines = [""]
    for _ in range(59):
        lines.append(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))))
    write("mono", lines)
    return lines


def write(name: str, lines: Iterable[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def read(path: str | Path) -> list[str]:
    return Path(path).read_text().splitlines()


def records(output: str = "out") -> list[dict[str, Any]]:
    """The lines of a folder with their translations."""
    return [json.loads(line) for line in read(Path(output, "translations.jsonl"))]


def names_in(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def contents_of(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.fixture
def make(nmt, mono, checkpoint):
    """A function that synthesizes from `mono` and returns the pairs."""

    def make(*words: str, output: str = "out", run: object = checkpoint) -> list[tuple[str, str]]:
        outcome = nmt("synthesize", "mono", f"run={run}", *SEARCH, f"output={output}", *words)
        assert outcome.code == 0, outcome.err
        sources = read(Path(output, "train.en"))
        targets = read(Path(output, "train.de"))
        return list(zip(sources, targets, strict=True))

    return make


SAMPLING = ["decode.do_sample=true", "decode.beam_size=1", "decode.seed=3"]


@pytest.mark.slow
@pytest.mark.parametrize("search", [[], SAMPLING])
def test_pairs_are_lines_and_their_translations(make, nmt, mono, checkpoint, search):
    pairs = make("flagged=keep", "buffer=7", *search)
    words = [f"run={checkpoint}", *SEARCH, *search, "input=mono", "output=hyp"]
    assert nmt("translate", *words).code == 0
    expected = []
    for line, translation in zip(mono, read("hyp"), strict=True):
        if line.strip() and translation.strip():
            expected.append((line, translation))
    assert pairs == expected


SCORERS = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}


def most_similar(metric: str, reference: str, translations: list[dict[str, Any]]) -> dict[str, Any]:
    def similarity(translation: dict[str, Any]) -> float:
        return SCORERS[metric].sentence_score(translation["text"], [reference]).score

    return max(translations, key=similarity)


def expected_pairs(metric: str, flagged: str) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The pairs of the most similar translations, and how often each flag occurs among them."""
    pairs = []
    flags = Counter[str]()
    for reference, row in zip(read("references"), records(), strict=True):
        if not row["source"]:
            continue
        best = most_similar(metric, reference, row["translations"])
        flags.update(best["flags"])
        is_kept = flagged == "keep" or not best["flags"]
        if best["text"] and is_kept:
            pairs.append((row["source"], best["text"]))
    return pairs, flags


def most_likely_pairs() -> list[tuple[str, str]]:
    pairs = [(row["source"], row["translations"][0]["text"]) for row in records()]
    return [pair for pair in pairs if all(pair)]


@pytest.mark.slow
def test_most_similar_translation_is_kept_and_flagged_pairs_dropped(make, mono, word_model):
    Path("out").mkdir()
    write("references", [f"ka lo {line}" for line in mono])
    options = ["decode.n_best=4", "reference=references"]
    pairs_of = {}
    for metric in SCORERS:
        for flagged in ("drop", "keep"):
            pairs = make(*options, f"metric={metric}", f"flagged={flagged}", run=word_model)
            assert [row["source"] for row in records()] == mono
            expected, flags = expected_pairs(metric, flagged)
            assert pairs == expected
            summary = json.loads(Path("out/summary.json").read_text())
            assert summary["lines"] == 60
            assert sum(summary["dropped"].values()) + summary["kept"] == 60
            assert (summary["dropped"]["flagged"] > 0) == (flagged == "drop")
            assert summary["flags"] == flags
            pairs_of[metric, flagged] = pairs
    assert pairs_of["chrf", "keep"] != most_likely_pairs()


def test_drop_removes_the_least_likely_pairs_without_translating_again(make, nmt, word_model):
    # The tokens of a random model differ from those of its text.
    pairs = make("flagged=keep", run=word_model)
    write("sources", [source for source, _ in pairs])
    write("targets", [target for _, target in pairs])
    words = [f"run={word_model}", "source=sources", "hypothesis=targets", "format=jsonl"]
    scores = []
    for line in nmt("score", *words).out.splitlines():
        row = json.loads(line)
        scores.append(row["log_probability"] / row["length"])
    ranking = sorted(range(len(pairs)), key=lambda index: scores[index])
    dropped = ranking[: int(0.25 * len(pairs))]
    before = Path("out/translations.jsonl").stat()
    kept = make("flagged=keep", "drop=0.25", run=word_model)
    assert kept == [pair for index, pair in enumerate(pairs) if index not in dropped]
    assert Path("out/translations.jsonl").stat() == before


@given(
    st.lists(st.sampled_from([-3.0, -2.5, -1.0, 0.0, float("-inf"), float("nan")])),
    st.floats(0, 0.99),
)
def test_worst_equals_a_plain_sort(scores, share):
    def key(index: int) -> tuple[float, int]:
        score = scores[index]
        return (-np.inf if np.isnan(score) else score, -index)

    expected = sorted(range(len(scores)), key=key)[: int(share * len(scores) + 1e-9)]
    assert selection.worst(np.array(scores, np.float64), share).tolist() == expected


def stop_at_thirty(models: Models, direction: Direction) -> Callable[[str, Translation], list[str]]:
    """Like `flagger`, but interrupts the command at the thirtieth line."""
    flags_of = flagger(models, direction)
    lines = []

    def flags_or_stop(line: str, translation: Translation) -> list[str]:
        lines.append(line)
        if len(lines) > 30:
            raise KeyboardInterrupt
        return flags_of(line, translation)

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


COMPLETE = {
    "identity.json",
    "translations.jsonl",
    "train.en",
    "train.de",
    "summary.json",
    ".lock",
}
PARTIAL = {
    "identity.json",
    ".translations.jsonl.nmt-partial",
    ".translations.jsonl.nmt-partial.json",
    ".lock",
}


def test_interrupted_command_resumes_with_any_number_of_threads(make, stop_early, word_model):
    Path("stopped").mkdir()
    # From a command that was killed at its beginning
    Path("stopped/.identity.json.0123abcd.nmt-tmp").touch()
    stop_early("stopped")
    assert names_in("stopped") == PARTIAL
    assert make("threads=2", output="stopped", run=word_model) == make(run=word_model)
    assert names_in("out") == COMPLETE
    assert names_in("stopped") == COMPLETE
    assert Path("out/identity.json").read_bytes() == Path("stopped/identity.json").read_bytes()


@pytest.mark.slow
def test_a_resumed_job_and_parts_write_the_same_digits(make, nmt, stop_early, word_model):
    make("buffer=7", output="whole", run=word_model)
    expected = Path("whole/translations.jsonl").read_bytes()
    stop_early("out")
    make("buffer=7", run=word_model)
    assert Path("out/translations.jsonl").read_bytes() == expected
    words = ["synthesize", "mono", f"run={word_model}", *SEARCH, "buffer=7", "output=parts"]
    for part in ("3/3", "1/3", "2/3"):
        assert nmt(*words, f"part={part}").code == 0
    make("buffer=7", output="parts", run=word_model)
    assert Path("parts/translations.jsonl").read_bytes() == expected
    parts = contents_of("parts/translations.jsonl.parts")
    assert all(parts[f"00{number}-of-003"] for number in (1, 2, 3))


@pytest.mark.slow
def test_two_commands_do_not_work_in_one_folder(make, nmt, word_model):
    make(run=word_model)
    before = contents_of("out")
    words = ("synthesize", "mono", f"run={word_model}", *SEARCH, "output=out")
    with only_process(Path("out"), "output"):
        for options in ([], ["drop=0.5"], ["overwrite=true"]):
            nmt(*words, *options).refused("out: another nmt is using it", "output=OTHER")
        assert contents_of("out") == before
    assert len(make("drop=0.5", run=word_model)) < len(before["train.en"].splitlines())


def test_a_folder_with_unrelated_files_is_not_locked(nmt, mono, word_model):
    words = ("synthesize", "mono", f"run={word_model}", *SEARCH)
    nmt(*words, "output=.").refused("unrelated files")
    assert not Path(".lock").exists()


@pytest.mark.slow
def test_folders_of_an_older_nmt_are_rejected_with_advice(make, nmt, stop_early, word_model):
    expected = make(output="whole", run=word_model)
    stop_early("out")
    path = Path("out/.translations.jsonl.nmt-partial.json")
    notes = json.loads(path.read_text())
    notes["identity"] = "0123abcd"
    path.write_text(json.dumps(notes))
    words = ("synthesize", "mono", f"run={word_model}", *SEARCH, "output=out")
    nmt(*words).refused("a stopped command has written", "overwrite=true")
    assert make("overwrite=true", run=word_model) == expected
    for identity in ('"0123abcd"', "{", json.dumps({"input": "0123abcd"})):
        Path("out/identity.json").write_text(identity)
        nmt(*words).refused("out has translations", "overwrite=true")
        assert make("overwrite=true", run=word_model) == expected


def test_overwrite_translates_again(make, word_model):
    expected = make("decode.beam_size=2", output="whole", run=word_model)
    make(run=word_model)
    assert make("decode.beam_size=2", "overwrite=true", run=word_model) == expected
    assert records() == records("whole")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["engine=ctranslate2", "device=auto", "decode.do_sample=true"], "engine=torch"),
        (["decode.n_best=2"], "reference=None with decode.n_best=2"),
        (["reference=short", "decode.n_best=2"], "short"),
    ],
)
def test_options_that_do_not_fit_are_one_line(nmt, mono, word_model, options, problem):
    write("short", ["ka"])
    words = ["synthesize", "mono", f"run={word_model}", *SEARCH, "output=new"]
    nmt(*words, *options).refused(problem)


@pytest.mark.slow
def test_errors_leave_the_folder_usable(make, nmt, word_model, monkeypatch):
    write("short", ["ka"])
    make(output="new", run=word_model)
    words = ["synthesize", f"run={word_model}", *SEARCH]
    nmt(*words, "output=.", "input=mono").refused("output=. has unrelated files")
    other_search = ["output=new", "decode.beam_size=2", "input=mono"]
    nmt(*words, *other_search).refused("a different decode.beam_size")
    nmt(*words, "output=new", "input=short").refused("a different input")
    words.append("input=mono")
    with monkeypatch.context() as patched:  # killed before the first file of another selection
        patched.setattr(selection, "whole_file", Mock(side_effect=KeyboardInterrupt))
        assert nmt(*words, "output=new", "drop=0.5").code == 130
    assert names_in("new") == {"identity.json", "translations.jsonl", ".lock"}
    path = Path("new/translations.jsonl")
    cut = path.read_text()[:-9]
    for content in (cut, '{"source": "x", "translations": []}\n', "7\n"):
        path.write_text(content)
        nmt(*words, "output=new").refused("translations.jsonl: damaged; remove it")


def test_an_empty_input_is_one_line(nmt, mono, word_model):
    write("mono", [])
    words = ["synthesize", "mono", f"run={word_model}", *SEARCH]
    nmt(*words, "output=empty").refused("none of the 0 pairs")


@pytest.mark.slow
def test_joined_parts_have_the_pairs_of_one_job(make, nmt, mono, checkpoint):
    one_by_one = ["decode.batch_tokens=1", "flagged=keep"]
    pairs = make(*one_by_one)
    words = ["synthesize", "mono", f"run={checkpoint}", *SEARCH, *one_by_one, "output=joined"]
    for part in ("1/3", "3/3"):
        assert nmt(*words, f"part={part}").code == 0
    nmt(*words).refused("unfinished parts: 2 of 3")
    assert nmt(*words, "part=2/3").code == 0
    assert "part 2/3 is complete" in nmt(*words, "part=2/3").err
    assert make(*one_by_one, output="joined") == pairs
    parts = contents_of("joined/translations.jsonl.parts")
    shutil.rmtree("joined/translations.jsonl.parts")
    assert contents_of("joined") == contents_of("out")
    assert sorted(parts)[0] == "001-of-003"
    # Without the parts, the joined translations are those of any other job.
    assert make(*one_by_one, "drop=0.5", output="joined") == make(*one_by_one, "drop=0.5")


def test_parts_with_other_settings_are_not_joined(nmt, mono, checkpoint):
    words = ["synthesize", "mono", f"run={checkpoint}", *SEARCH, "output=out"]
    assert nmt(*words, "part=1/1").code == 0
    nmt(*words, "split=never").refused(
        "001-of-001: was computed with another split than this command", "part=1/1 overwrite=true"
    )
    write("mono", ["ka lo", *mono[1:]])
    nmt(*words).refused("001-of-001: ", "was computed")
    outcome = nmt("runs", "out")
    assert "synthetic" in outcome.out
