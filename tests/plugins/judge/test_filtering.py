"""`nmt score output=FILE`: pairs with their log P, or those that pass a filter."""

import gzip
import json
import math
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.plugins.judge import filtering
from nmt.translation import load_translator, score_pairs, score_short_pairs
from tests.conftest import WORDS
from tests.helpers.options import translator_options

COUNT = 60


@pytest.fixture
def pairs(here, monkeypatch) -> list[tuple[str, str]]:
    """Pairs in all formats, scored in blocks of seven."""
    monkeypatch.setattr(filtering, "BLOCK", 7)
    draw = random.Random(1)
    pairs = []
    for _ in range(COUNT):
        source = draw.choices(WORDS, k=draw.randint(1, 9))
        target = draw.choices(WORDS, k=draw.randint(1, 9))
        pairs.append((" ".join(source), " ".join(target)))
    write_pairs(pairs)
    return pairs


def write_pairs(pairs: list[tuple[str, str]]) -> None:
    write("s", [source for source, _ in pairs])
    write("t", [target for _, target in pairs])
    write("p.tsv", [f"{number}\t{s}\t{t}" for number, (s, t) in enumerate(pairs)])
    rows = []
    for number, (source, target) in enumerate(pairs):
        # Parsed and written again, neither the number nor the blanks would stay.
        rows.append(f'{{"id": {number}.50,"en":"{source}",  "de":"{target}"}} ')
    write("p.jsonl", rows)


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def score(nmt, finished):
    """A function that runs `nmt score` with the model."""

    def run(*words: str):
        outcome = nmt("score", str(finished), *words, "device=cpu", "threads=1")
        assert outcome.code == 0, outcome.err
        return outcome

    return run


@pytest.fixture
def expected(score, pairs) -> list[float]:
    """log P per token of each pair, from the command without an output."""
    values = []
    for line in score("source=s", "hypothesis=t", "format=jsonl").out.splitlines():
        record = json.loads(line)
        values.append(record["log_probability"] / record["length"])
    return values


COLUMNS = "columns=[2,3]"


def test_each_pair_gets_its_log_probability_per_token(score, pairs, expected):
    score("p.tsv", "output=a.tsv", COLUMNS)
    score("p.jsonl", "output=a.jsonl")
    score("source=s", "hypothesis=t", "output=b.tsv")
    rows = Path("a.tsv").read_text().splitlines()
    records = Path("a.jsonl").read_text().splitlines()
    columns = Path("b.tsv").read_text().splitlines()
    assert len(rows) == len(records) == len(columns) == COUNT
    before = Path("p.jsonl").read_text().splitlines()
    for index, (source, target) in enumerate(pairs):
        number, *texts, value = rows[index].split("\t")
        assert (number, *texts) == (str(index), source, target)
        assert float(value) == pytest.approx(expected[index], abs=1e-5)
        assert columns[index] == f"{source}\t{target}\t{value}"
        assert records[index].startswith(before[index].rstrip("} "))
        assert json.loads(records[index])["log_probability_per_token"] == float(value)


def test_a_minimum_keeps_likely_pairs_as_they_are(score, pairs, expected):
    minimum = sorted(expected)[COUNT // 2] + 1e-5
    kept = [index for index, value in enumerate(expected) if value >= minimum]
    for name, place in (("p.tsv", [COLUMNS]), ("p.jsonl", [])):
        outcome = score(name, f"output=k{name[1:]}", *place, f"minimum={minimum}")
        assert f"kept {len(kept)} of {COUNT} pairs" in outcome.err
        lines = Path(name).read_text().splitlines(keepends=True)
        assert Path(f"k{name[1:]}").read_text() == "".join(lines[index] for index in kept)
    score("source=s", "hypothesis=t", "output=k.tsv.gz", f"minimum={minimum}")
    rows = ["\t".join(pairs[index]) for index in kept]
    assert gzip.decompress(Path("k.tsv.gz").read_bytes()).decode().splitlines() == rows


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["minimum=-2.4"]])
@pytest.mark.parametrize("name", ["s.tsv", "p.jsonl"])
def test_parts_have_the_bytes_of_one_job(nmt, score, pairs, name, words):
    whole = f"whole{Path(name).suffix}"
    out = f"out{Path(name).suffix}"
    write("s.tsv", ["\t".join(pair) for pair in pairs])
    lines = score(name, f"output={whole}", *words).err.splitlines()
    for part in ("3/3", "1/3", "2/3"):
        last = score(name, f"output={out}", f"part={part}", *words).err.splitlines()[-1]
        assert last.endswith(f" pairs: {out}.parts/00{part[0]}-of-003")
    assert "part 2/3 is complete" in score(name, f"output={out}", "part=2/3", *words).err
    outcome = nmt("gather", out)
    assert outcome.code == 0
    # The quantiles and numbers of all parts are those of one job.
    assert outcome.err.splitlines() == lines[-2:-1]
    kept = len(Path(whole).read_text().splitlines())
    number = f"kept {kept} of 60 pairs (3 parts)" if kept < COUNT else "60 lines of 3 parts"
    assert outcome.out == f"{out}: {number}\n"
    assert Path(out).read_bytes() == Path(whole).read_bytes()
    sizes = [Path(f"{out}.parts/00{number}-of-003").stat().st_size for number in (1, 2, 3)]
    assert words or all(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["p.tsv", COLUMNS], ["source=s", "hypothesis=t"]])
def test_a_killed_job_resumes_at_a_block(nmt, finished, score, pairs, words, monkeypatch):
    score(*words, "output=whole.tsv")
    compute = filtering.ScoreWork.compute
    done = []

    def stop_at_third_block(work, texts, rows):
        done.append(len(texts))
        if len(done) == 3:
            raise KeyboardInterrupt
        return compute(work, texts, rows)

    with monkeypatch.context() as patched:
        patched.setattr(filtering.ScoreWork, "compute", stop_at_third_block)
        command = ["score", str(finished), *words, "output=out.tsv", "device=cpu", "threads=1"]
        assert nmt(*command).code == 130
    assert not Path("out.tsv").exists()
    nmt(*command, "minimum=-3").refused("another minimum", "overwrite=true")
    assert "resuming after 14 of 60 lines" in score(*words, "output=out.tsv").err
    assert Path("out.tsv").read_bytes() == Path("whole.tsv").read_bytes()
    nmt(*command).refused("out.tsv exists", "overwrite=true")


def test_two_models_add_two_fields(score, pairs, expected):
    """As dual conditional cross-entropy needs them."""
    score("p.jsonl", "output=forward.jsonl")
    score("forward.jsonl", "output=both.jsonl", "fields=[de,en]", "score_name=back")
    swapped = [(target, source) for source, target in pairs]
    write_pairs(swapped)
    score("source=s", "hypothesis=t", "output=swapped.tsv")
    values = [line.split("\t")[2] for line in Path("swapped.tsv").read_text().splitlines()]
    for line, value in zip(Path("both.jsonl").read_text().splitlines(), values, strict=True):
        record = json.loads(line)
        assert record["back"] == float(value)
        assert not math.isnan(record["log_probability_per_token"])


def test_unusual_rows(score, pairs):
    book = "ka " * 2000
    lines = [
        b'{"translation": {"en": "ka", "de": "lo"}}\r\n',
        f'{{"en": "{book}", "de": "lo"}}\n'.encode(),
        b'{"en": "ka \xff", "de": "lo"}',
    ]
    Path("u.jsonl").write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    outcome = score("u.jsonl", "output=u1.jsonl")
    assert "u.jsonl, line 2: too long to score (over 5,000" in outcome.err
    records = [json.loads(line) for line in Path("u1.jsonl").read_bytes().splitlines()]
    values = [record["log_probability_per_token"] for record in records]
    assert values[1] is None
    assert values[0] < 0
    outcome = score("u.jsonl", "output=u2.jsonl", "minimum=-100")
    assert "kept 2 of 3 pairs" in outcome.err
    assert Path("u2.jsonl").read_bytes() == b"\xef\xbb\xbf" + lines[0] + lines[2] + b"\n"


def test_pairs_beyond_learned_positions_have_no_score(finished):
    translator = load_translator(translator_options([str(finished)], device="cpu"), print)
    # As if this model had a table of learned positions.
    narrow = replace(translator, limits=replace(translator.limits, positions=12))
    texts = [("ka", "lo"), ("ka " * 40, "lo"), ("ka", "lo " * 40), ("mi", "nu")]
    scores = score_short_pairs(narrow, texts)
    assert scores[1] is None
    assert scores[2] is None
    expected = score_pairs(translator, [texts[0], texts[3]])
    assert [scores[0], scores[3]] == expected


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["p.tsv", "output=o.jsonl"], "must have a suffix of the input's format, tsv"),
        (["p.parquet", "output=o.parquet"], "pass cluster=ray, which reads Parquet"),
        (["s", "output=o.tsv"], "must be a .tsv, .jsonl or"),
        (["missing.tsv", "output=o.tsv"], "missing.tsv"),
        (["p.tsv"], "need a file for the pairs; pass output=FILE"),
        (["source=s", "hypothesis=t", "minimum=-1"], "pass output=FILE"),
        (["source=s", "hypothesis=t", "output=o.txt"], "must end in .tsv"),
        (["source=s", "hypothesis=t", "output=o.tsv", "part=1/2"], "paste SOURCE TARGET"),
        (["source=s", "hypothesis=short", "output=o.tsv"], "not parallel"),
        (["source=s", "output=o.tsv"], "needs the pairs to score"),
        (["p.tsv", "source=s", "output=o.tsv"], "omit source and hypothesis"),
        (["p.tsv", "output=p.tsv", "overwrite=true"], "would overwrite the input"),
        (["p.tsv", "output=o.tsv", "fields=[en,de]"], "fields=[en,de]: needs a .jsonl"),
        (["p.jsonl", "output=o.jsonl", COLUMNS], "columns=[2,3]: needs a .tsv file"),
        (["source=s", "hypothesis=t", "output=o.tsv", COLUMNS], "columns=[2,3]: needs a .tsv file"),
        (["source=s", "hypothesis=t", "fields=[en,de]"], "pass output=FILE"),
        (["p.tsv", "output=o.tsv", "ray.workers=2"], "ray.workers=2: needs cluster=ray"),
        (["p.tsv", COLUMNS, "output=no/such folder/o.tsv"], "create it with mkdir -p 'no/such folder'"),
        (["p.tsv", "output=o.tsv", "columns=[2,4]"], "p.tsv, line 1: 3 columns, but columns=[2, 4]"),
        (["p.tsv", "output=o.tsv", "columns=[0,1]"], "must be two numbers"),
        (["p.jsonl", "output=o.jsonl", "fields=[en]"], "must be two names"),
        (["p.jsonl", "output=o.jsonl", "fields=[en,fr]"], "strings en and fr; fix the line"),
        (["p.jsonl", "output=o.jsonl", "score_name=id"], "has a field id already"),
        (["p.tsv", "output=o.tsv", "minimum=1"], "minimum=1"),
        (["p.tsv", "output=o.tsv", "format=json"], "omit it"),
        (["p.tsv", "output=-", "cluster=ray"], "needs a file for the results"),
        (["p.tsv", "output=o.tsv", "cluster=ray", "part=1/2"], "omit part"),
    ],
)  # fmt: skip
def test_refusals(nmt, finished, pairs, words, problem):
    write("short", ["ka"])
    write("p.parquet", ["PAR1"])
    nmt("score", str(finished), *words, "device=cpu").refused(problem)
    assert not Path("o.tsv").exists()


def test_options_of_a_model_need_one(nmt, pairs):
    nmt("score", "t", "s", "output=o.tsv").refused("output=o.tsv: needs a model")


def test_a_tab_in_a_line_of_two_files_is_named(nmt, finished, pairs):
    write("s", ["ka\tlo", "mi"])
    write("t", ["ka", "mi"])
    words = ["source=s", "hypothesis=t", "output=o.tsv", "device=cpu"]
    nmt("score", str(finished), *words).refused("s, line 1: contains a tab")


@pytest.mark.slow
def test_a_job_without_parts_left_over(score, pairs):
    """More parts than blocks: the last parts are empty."""
    score("p.tsv", "output=whole.tsv", COLUMNS)
    for number in range(1, 21):
        score("p.tsv", "output=out.tsv", COLUMNS, f"part={number}/20")
    contents = [path.read_bytes() for path in sorted(Path("out.tsv.parts").glob("*-of-020"))]
    assert b"".join(contents) == Path("whole.tsv").read_bytes()
    shutil.rmtree("out.tsv.parts")


GUIDE = Path(__file__).parents[3] / "docs/guides/translate.md"
WITHOUT_SCORE = {
    "tsv": lambda line: line.rpartition("\t")[0],
    "jsonl": lambda line: drop(json.loads(line), "log_probability_per_token"),
}


def drop(record: dict, name: str) -> dict:
    return {key: value for key, value in record.items() if key != name}


@pytest.mark.parametrize(("program", "suffix"), [("awk", "tsv"), ("jq", "jsonl")])
def test_the_guide_filters_a_scored_file_like_a_minimum(score, pairs, expected, program, suffix):
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    pairs[3] = ("ka " * 2000, "lo")  # too long for a score
    write_pairs(pairs)
    minimum = sorted(expected)[COUNT // 2] + 1e-5
    place = [COLUMNS] if suffix == "tsv" else []
    score(f"p.{suffix}", f"output=scored.{suffix}", *place)
    score(f"p.{suffix}", f"output=kept.{suffix}", *place, f"minimum={minimum}")
    lines = [line for line in GUIDE.read_text().splitlines() if line.startswith(f"{program} ")]
    assert len(lines) == 1
    subprocess.run(lines[0].replace("-4.4", str(minimum)), shell=True, check=True)
    filtered = Path(f"likely.{suffix}").read_text().splitlines()
    kept = Path(f"kept.{suffix}").read_text().splitlines()
    assert 0 < len(kept) < COUNT
    parsed = [json.loads(line) for line in kept] if suffix == "jsonl" else kept
    assert [WITHOUT_SCORE[suffix](line) for line in filtered] == parsed


def test_a_minimum_that_keeps_hardly_any_pair_is_noticed(score, pairs):
    lines = score("p.jsonl", "output=none.jsonl", "minimum=-0.001").err.splitlines()
    assert "25% below -2.5, 50% below -2.4" in lines[-3]
    assert "minimum=-0.001 keeps less than 1% of the pairs" in lines[-2]
    assert lines[-1] == "nmt: kept 0 of 60 pairs: none.jsonl"
    lines = score("p.jsonl", "output=all.jsonl", "minimum=-100").err.splitlines()
    assert "minimum=-100 drops less than 1% of the pairs" in lines[-2]
    assert lines[-1] == "nmt: kept 60 of 60 pairs: all.jsonl"


def test_a_pair_with_an_empty_side_gets_no_score(score, here):
    Path("p.tsv").write_text("ka lo\tmi\n\t\n \tmi\nka\t\n")
    outcome = score("p.tsv", "output=out.tsv")
    assert "3 lines: not scored, because a side is empty" in outcome.err
    scored, *others = Path("out.tsv").read_text().split("\n")[:-1]
    assert float(scored.split("\t")[2]) < 0
    assert others == ["\t\t", " \tmi\t", "ka\t\t"]
    score("p.tsv", "output=kept.tsv", "minimum=-100")
    assert Path("kept.tsv").read_text() == "ka lo\tmi\n"


@pytest.mark.parametrize(
    "words",
    [["p.tsv", "columns=[2,2]"], ["p.jsonl", "fields=[en,en]"], ["source=s", "hypothesis=s"]],
)
def test_both_sides_must_differ(nmt, finished, pairs, words):
    suffix = ".jsonl" if "p.jsonl" in words else ".tsv"
    outcome = nmt("score", str(finished), *words, f"output=out{suffix}")
    outcome.failed("both sides of the pairs are")
