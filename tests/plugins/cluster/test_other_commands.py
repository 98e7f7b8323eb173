"""`nmt synthesize` and `nmt score` in blocks have the bytes of one machine."""

import gzip
import random
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.plugins.cluster import job, pool
from nmt.plugins.judge import filtering
from tests.conftest import WORDS
from tests.plugins.cluster.this_process import Pools, Stopped

COUNT = 60
SEARCH = ["engine=torch", "threads=1", "decode.beam_size=2", "decode.max_extra_length=3"]


def sentences(seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(COUNT)]


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def cluster(monkeypatch, here):
    """A function that makes `cluster=ray` use this process, and returns the opened pools."""

    def use(seed: int = 1, blocks: int | None = None) -> Pools:
        pools = Pools(seed, blocks)
        monkeypatch.setattr(pool, "check_installed", lambda: None)
        monkeypatch.setattr(job, "run_on_ray", lambda work: job.run_in_blocks(work, pools.open))
        return pools

    return use


@pytest.fixture
def run(nmt, word_model):
    """A function that runs a command with the model on one thread."""

    def run(command: str, *words: str):
        outcome = nmt(command, f"run={word_model}", "threads=1", "device=cpu", *words)
        assert outcome.code == 0, outcome.err
        return outcome

    return run


SAMPLING = ["decode.do_sample=true", "decode.beam_size=1", "decode.seed=3"]
CHOICES = ["decode.n_best=2", "reference=ref"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], SAMPLING, CHOICES, ["glossary=terms.tsv"], ["split=never"]])
def test_synthesis_has_the_bytes_of_one_machine(run, cluster, words):
    write("mono", ["", *sentences(1), "ka lo. mi nu. " * 9])
    write("ref", ["", *sentences(2), "ka"])
    write("terms.tsv", ["ka\tlo mi"])
    words = ["input=mono", *SEARCH, "buffer=7", "flagged=keep", *words]
    run("synthesize", *words, "output=alone")
    cluster(blocks=3)
    stopped = [*words, "output=bulk", "cluster=ray", "ray.lines=14"]
    with pytest.raises(Stopped):
        run("synthesize", *stopped)
    pools = cluster(seed=2)
    run("synthesize", *stopped)
    assert pools.opened[0].done == 2
    assert sorted(path.name for path in Path("bulk").iterdir()) == sorted(
        path.name for path in Path("alone").iterdir()
    )
    for path in Path("alone").iterdir():
        assert (Path("bulk") / path.name).read_bytes() == path.read_bytes(), path
    # Another choice of pairs needs no worker.
    run("synthesize", *stopped, "drop=0.5")
    assert len(pools.opened) == 1


@pytest.fixture
def pairs(here, monkeypatch) -> None:
    """The same pairs in all formats, which are scored in blocks of seven."""
    monkeypatch.setattr(filtering, "BLOCK", 7)
    write("s", sentences(1))
    write("t", sentences(2))
    texts = list(zip(sentences(1), sentences(2), strict=True))
    write("p.tsv", [f"{s}\t{t}" for s, t in texts])
    write("p.jsonl", [f'{{"en":"{s}",  "de":"{t}"}}' for s, t in texts])
    Path("p.tsv.gz").write_bytes(gzip.compress(Path("p.tsv").read_bytes()))


FORMATS = {
    "tsv": ["input=p.tsv"],
    "gz": ["input=p.tsv.gz"],
    "jsonl": ["input=p.jsonl"],
    "files": ["source=s", "hypothesis=t"],
}


@pytest.mark.slow
@pytest.mark.parametrize("minimum", [[], ["minimum=-5.7"]])
@pytest.mark.parametrize("words", FORMATS.values(), ids=FORMATS)
def test_scores_have_the_bytes_of_one_machine(run, cluster, pairs, words, minimum):
    suffix = "jsonl" if "input=p.jsonl" in words else "tsv"
    alone = run("score", *words, f"output=alone.{suffix}", *minimum).err.splitlines()
    cluster(blocks=2)
    words = [*words, *minimum, f"output=bulk.{suffix}", "cluster=ray", "ray.lines=14"]
    with pytest.raises(Stopped):
        run("score", *words)
    pools = cluster(seed=2)
    bulk = run("score", *words).err.splitlines()
    assert pools.opened[0].done == 3
    assert Path(f"bulk.{suffix}").read_bytes() == Path(f"alone.{suffix}").read_bytes()
    assert "nmt: log P per token of 60 pairs: 10% below " in bulk[-2]
    # The same quantiles and counts, also after the interruption.
    assert [line.replace("alone", "bulk") for line in alone[-2:]] == bulk[-2:]


def test_parquet_has_the_scores_of_a_table(run, cluster, pairs):
    cluster()
    texts = {"en": sentences(1), "de": sentences(2)}
    texts["de"][20] = None
    table = pa.table({"id": range(COUNT), **texts})
    pq.write_table(table, "in.parquet", compression="zstd", row_group_size=9)
    bulk = ["cluster=ray", "ray.lines=14"]
    run("score", "input=in.parquet", "output=all.parquet", *bulk)
    run("score", "input=in.parquet", "output=some.parquet", "minimum=-5.7", *bulk)
    done = pq.read_table("all.parquet")
    values = done["log_probability_per_token"].to_pylist()
    assert done.drop_columns("log_probability_per_token").equals(table)
    kept = [index for index, value in enumerate(values) if value is not None and value >= -5.7]
    assert 0 < len(kept) < COUNT, sorted(values, key=str)
    assert pq.read_table("some.parquet").equals(table.take(kept))
    # The scores of pairs before the null, whose block is the same.
    run("score", "input=p.tsv", "output=alone.tsv")
    column = [float(line.split("\t")[2]) for line in Path("alone.tsv").read_text().splitlines()]
    assert values[:14] == column[:14]
    assert values[20] is None


def test_parquet_with_translations_in_a_column(run, cluster, pairs):
    """The form of Hugging Face's data sets."""
    cluster()
    texts = [{"en": s, "de": t} for s, t in zip(sentences(1), sentences(2), strict=True)]
    texts[20] = None
    texts[30]["de"] = None
    table = pa.table({"translation": texts, "id": range(COUNT)})
    pq.write_table(table, "in.parquet", row_group_size=9)
    bulk = ["cluster=ray", "ray.lines=14"]
    run("score", "input=in.parquet", "output=all.parquet", *bulk)
    run("score", "input=in.parquet", "output=some.parquet", "minimum=-5.7", *bulk)
    done = pq.read_table("all.parquet")
    assert done.drop_columns("log_probability_per_token").equals(table)
    values = done["log_probability_per_token"].to_pylist()
    assert [index for index, value in enumerate(values) if value is None] == [20, 30]
    run("score", "input=p.tsv", "output=alone.tsv")
    column = [float(line.split("\t")[2]) for line in Path("alone.tsv").read_text().splitlines()]
    # Blocks of 14 pairs, of which the second and the third have a null.
    assert values[:14] == column[:14]
    assert values[42:] == column[42:]
    kept = [index for index, value in enumerate(values) if value is not None and value >= -5.7]
    assert 0 < len(kept) < COUNT
    assert pq.read_table("some.parquet").equals(table.take(kept))


def test_a_pattern_of_files(run, cluster, pairs):
    cluster()
    run("score", "input=p.jsonl", "output=alone.jsonl", "minimum=-5.7")
    Path("in").mkdir()
    Path("p.jsonl").rename("in/a.jsonl")
    Path("in/b.jsonl").write_bytes(Path("in/a.jsonl").read_bytes())
    words = ["output=out", "minimum=-5.7", "cluster=ray", "ray.lines=7"]
    outcome = run("score", "input=in/*.jsonl", *words)
    for name in ("a", "b"):
        assert Path(f"out/{name}.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()
    assert "of 120 pairs" in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["input=p.tsv", "output=o.tsv", "ray.lines=10"], "must be a multiple of 7"),
        (["source=s", "hypothesis=short", "output=o.tsv"], "not parallel"),
        (["input=x.jsonl", "output=o.jsonl"], "x.jsonl, line 1: not an object with strings"),
        (["input=x.parquet", "output=o.parquet"], "no column de, only en"),
        (["input=y.parquet", "output=o.parquet"], "the column de has type int64"),
        (["input=z.parquet", "output=o.parquet"], "the column translation.de has type int64"),
        (["input=in", "output=out"], "must be a .tsv"),
        (["source=s", "hypothesis=t.tsv", "output=t.tsv", "overwrite=true"], "overwrite an input"),
        (["source=s", "hypothesis=missing", "output=o.tsv"], "missing: No such file"),
        (["source=missing", "hypothesis=t", "output=o.tsv"], "missing: No such file"),
        (["input=*.tsv", "output=p.tsv"], "names several; name a folder"),
    ],
)
def test_refusals(nmt, word_model, cluster, pairs, words, problem):
    cluster()
    write("short", ["ka"])
    write("t.tsv", sentences(2))
    write("x.jsonl", ["{}"])
    pq.write_table(pa.table({"en": ["x"]}), "x.parquet")
    pq.write_table(pa.table({"en": ["x"], "de": [1]}), "y.parquet")
    pq.write_table(pa.table({"translation": [{"en": "x", "de": 1}]}), "z.parquet")
    words = [*words, "cluster=ray"]
    if not any(word.startswith("ray.lines") for word in words):
        words.append("ray.lines=14")
    nmt("score", f"run={word_model}", "device=cpu", *words).refused(problem)
    assert Path("t.tsv").stat().st_size


def test_a_missing_program_is_an_error_before_anything_is_written(
    nmt, word_model, here, monkeypatch
):
    monkeypatch.setattr(pool, "find_spec", lambda name: None)
    write("mono", ["ka"])
    words = ["synthesize", "mono", f"run={word_model}", *SEARCH, "output=out"]
    nmt(*words, "cluster=ray").refused("cluster=ray needs the package ray")
    nmt(*words, "ray.cpus=2").refused("ray.cpus=2: needs cluster=ray")
    assert not Path("out").exists()


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "pq"])
def test_advice_on_records_names_the_cluster(nmt, word_model, here, suffix):
    write(f"x.{suffix}", ["x"])
    nmt("translate", f"x.{suffix}", str(word_model)).refused("pass cluster=ray, which translates")


def test_a_synthesis_on_a_cluster_refuses_parts(nmt, word_model, cluster):
    cluster()
    write("mono", ["ka"])
    words = ["synthesize", "mono", f"run={word_model}", *SEARCH, "output=out", "cluster=ray"]
    nmt(*words, "part=1/2").refused("omit part")
    nmt(*words, "ray.lines=10").refused("must be a multiple of 2,000")
    words[1] = "input=memory://mono"
    nmt(*words).refused("input=memory://mono: must be on this machine")
    words[1] = "input=missing*"
    nmt(*words).refused("input=missing*: must be one file")
    words[1] = "mono"
    nmt(*words, "output=s3://bucket/bt").refused("output=s3://bucket/bt: must be on this machine")
    assert not Path("s3:").exists()


@pytest.fixture
def remote(here):
    """Files of lines and of pairs on a server of fsspec, and in a folder of this machine."""
    files = fsspec.filesystem("memory")
    lines = "".join(f"{line}\n" for line in sentences(1))
    pairs = [f"{source}\t{source}\n" for source in sentences(1)]
    for name, content in (("mono/a.txt", lines), ("pairs/a.tsv", "".join(pairs))):
        files.pipe_file(f"/bucket/{name}", content.encode())
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text(content)
    yield files
    files.rm("/bucket", recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name", "output"),
    [
        ("translate", "memory://bucket/mono/", "out/a.txt"),
        ("translate", "memory://bucket/mono/a.txt", "out.txt"),
        ("translate", "mono/*.txt", "out/a.txt"),
        ("score", "memory://bucket/pairs/a.tsv", "out.tsv"),
        ("score", "pairs/*.tsv", "out/a.tsv"),
    ],
)
def test_addresses_and_patterns_need_no_key(
    remote, cluster, nmt, word_model, command, name, output
):
    cluster()
    words = [command, str(word_model), "cluster=ray", "engine=torch", "ray.lines=2000"]
    if command == "score":
        words.remove("engine=torch")
    folder = output.partition("/")[0]
    assert nmt(*words, f"input={name}", f"output=named/{folder}").code == 0
    outcome = nmt(*words, name, f"output={folder}")
    assert outcome.code == 0, outcome.err
    assert Path(output).read_bytes() == Path("named", output).read_bytes()
    # Finished files stay, also those of a folder that exists.
    if folder != output:
        assert "from earlier commands" in nmt(*words, name, f"output={folder}").err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["translate", "s3://bucket/mono/"], "input=s3://bucket/mono/: an address needs cluster"),
        (["translate", "multi/*.txt"], "input=multi/*.txt: a pattern of files needs cluster=ray"),
        (["translate", "input=multi/*.txt"], "input=multi/*.txt: a pattern of files needs cluster"),
        (["score", "s3://bucket/p.tsv", "output=x.tsv"], "input=s3://bucket/p.tsv: an address ne"),
        (["score", "p/*.tsv", "output=x"], "input=p/*.tsv: a pattern of files needs cluster=ray"),
        (["synthesize", "s3://bucket/a", "output=x"], "input=s3://bucket/a: must be on this"),
        (["synthesize", "mono/*.txt", "output=x"], "input=mono/*.txt: must be one file"),
        (["parse", "mono/*.txt", "output=x"], "mono/*.txt: no such file or folder"),
    ],
)
def test_without_a_cluster_they_are_refused(here, nmt, word_model, words, problem):
    nmt(*words, str(word_model)).refused(problem)


def test_only_models_score_addresses(nmt):
    nmt("score", "s3://bucket/p.tsv").refused("input=s3://bucket/p.tsv: needs a model")
