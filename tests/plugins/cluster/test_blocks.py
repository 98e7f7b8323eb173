"""Bulk translation in blocks, with workers in this process instead of a cluster."""

import errno
import gzip
import json
import os
import random
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.commands import compose
from nmt.errors import NMTError
from nmt.files import only_process
from nmt.plugins.cluster import places, pool
from nmt.plugins.cluster.job import run_in_blocks
from nmt.plugins.cluster.lines import with_translation
from nmt.plugins.cluster.store import Store
from nmt.translation import TranslationWork
from tests.conftest import WORDS
from tests.plugins.cluster.this_process import Pools, Stopped, ThisProcess

LINES = [
    " ".join(random.Random(seed).choices(WORDS, k=random.Random(seed).randint(1, 7)))
    for seed in range(40)
]


@pytest.fixture
def bulk(word_model, here):
    """A function that runs `nmt translate` in blocks, and returns the pools that it opened."""

    def run(*words: str, blocks: int | None = None, seed: int = 1) -> list[ThisProcess]:
        pools = Pools(seed, blocks)
        options = ["cluster=ray", "ray.lines=5", f"run={word_model}", "engine=torch", *words]
        config = compose("translate", options)
        run_in_blocks(TranslationWork(config, config.cluster_options), pools.open)
        return pools.opened

    return run


@pytest.fixture
def expected(nmt, word_model, here):
    """A function that returns what `nmt translate` writes for some lines on one machine."""

    def translations(lines: list[str]) -> list[str]:
        Path("alone.txt").write_text("".join(f"{line}\n" for line in lines))
        assert nmt("translate", "alone.txt", str(word_model), "output=alone.de").code == 0
        content = Path("alone.de").read_text()
        Path("alone.de").unlink()
        return content.split("\n")[:-1]

    return translations


def write_lines(name: str, lines: list[str]) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def test_a_text_file_has_the_bytes_of_one_machine(bulk, expected):
    lines = ["\ufeff" + LINES[0], "", *LINES[1:]]
    write_lines("in.txt", lines)
    [workers] = bulk("input=in.txt", "output=out.txt")
    assert Path("out.txt").read_text().split("\n")[:-1] == expected(lines)
    assert workers.done == 9
    assert workers.most_open == 4
    assert not Path("out.txt.blocks").exists()


def test_jsonl_keeps_its_bytes_and_gets_a_field(bulk, expected):
    rows = [
        f'{{"id": {number}.50, "body":"{line}", "é": [1e400]}}' for number, line in enumerate(LINES)
    ]
    rows[3] = '{"body": "ka lo\\nmi nu\\r\\n\\ud800", "id":3}  '
    rows[7] = ""
    write_lines("in.jsonl", rows)
    bulk("input=in.jsonl", "output=out.jsonl", "ray.field=body")
    done = Path("out.jsonl").read_text().split("\n")[:-1]
    assert len(done) == len(rows)
    assert done[7] == ""
    texts = expected([*LINES, "ka lo", "mi nu", "\ufffd"])
    for number, (row, line) in enumerate(zip(rows, done, strict=True)):
        if number == 7:
            continue
        before = row.rstrip().removesuffix("}")
        assert line.startswith(before)
        text = "\n".join(texts[-3:]) if number == 3 else texts[number]
        assert json.loads(line)["translation"] == text


def test_parquet_keeps_its_columns_and_gets_one(bulk, expected):
    texts = [*LINES[:17], None, *LINES[17:]]
    table = pa.table(
        {"id": pa.array(range(41), pa.int16()), "text": texts, "tags": [["a"], []] * 20 + [None]},
        metadata={"huggingface": "{}", "made": "by hand"},
    )
    pq.write_table(table, "in.parquet", compression="zstd", row_group_size=7)
    bulk("input=in.parquet", "output=out.parquet")
    done = pq.read_table("out.parquet")
    assert done.drop_columns("translation").equals(
        table.replace_schema_metadata({"made": "by hand"})
    )
    assert done.schema.metadata == {b"made": b"by hand"}
    translations = done["translation"].to_pylist()
    assert translations.pop(17) is None
    assert translations == expected(LINES)
    assert pq.ParquetFile("out.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.slow
def test_a_folder_has_one_output_per_file(bulk, expected, here):
    write_lines("in/a.txt", LINES[:12])
    write_lines("in/deep/b.en", [])
    Path("in/deep/c.txt.gz").write_bytes(gzip.compress("\n".join(LINES[12:]).encode()))
    write_lines("in/.hidden", ["no"])
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), "in/none.parquet")
    bulk("input=in/", "output=out")
    texts = expected(LINES)
    assert Path("out/a.txt").read_text().split("\n")[:-1] == texts[:12]
    assert Path("out/deep/b.en").read_text() == ""
    assert (
        gzip.decompress(Path("out/deep/c.txt.gz").read_bytes()).decode().split("\n")[:-1]
        == texts[12:]
    )
    assert pq.read_table("out/none.parquet").column_names == ["text", "translation"]
    names = sorted(
        str(path.relative_to("out")) for path in Path("out").rglob("*") if path.is_file()
    )
    assert names == ["a.txt", "deep/b.en", "deep/c.txt.gz", "none.parquet"]
    # A second command translates only what is new.
    write_lines("in/new.txt", LINES[:3])
    [workers] = bulk("input=in/", "output=out")
    assert workers.done == 1
    Path("out/a.txt").unlink()
    [workers] = bulk("input=in/*.txt", "output=out")
    assert workers.done == 3
    write_lines("in/new.txt", LINES[:4])
    with pytest.raises(NMTError, match=r"in/new\.txt: has changed"):
        bulk("input=in/", "output=out")


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [0, 1, 5, 7])
def test_a_stopped_job_repeats_no_finished_block(bulk, expected, blocks):
    write_lines("in.txt", LINES)
    with pytest.raises(Stopped):
        bulk("input=in.txt", "output=out.txt", blocks=blocks)
    assert not Path("out.txt").exists()
    # A killed command may have been writing the output or a block.
    Path(".out.txt.01234567.nmt-tmp").write_text("half")
    Path("out.txt.blocks/.job.json.01234567.nmt-tmp").write_text("half")
    [workers] = bulk("input=in.txt", "output=out.txt", seed=2)
    assert workers.done == 8 - blocks
    assert Path("out.txt").read_text().split("\n")[:-1] == expected(LINES)
    assert not list(Path().glob(".out*"))
    assert not Path("out.txt.blocks").exists()


@pytest.mark.slow
def test_a_damaged_block_is_translated_again(bulk, expected):
    write_lines("in.txt", LINES)
    with pytest.raises(Stopped):
        bulk("input=in.txt", "output=out.txt", blocks=6)
    paths = sorted(path for path in Path("out.txt.blocks/blocks").rglob("*") if path.is_file())
    paths[0].write_bytes(paths[0].read_bytes()[:-1])
    paths[1].write_bytes(b"")
    [workers] = bulk("input=in.txt", "output=out.txt")
    assert workers.done == 4
    assert Path("out.txt").read_text().split("\n")[:-1] == expected(LINES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["ray.lines=6"], "another ray.lines"),
        (["decode.beam_size=2"], "another decode.beam_size"),
        (["ray.cpus=2"], "another ray.cpus"),
    ],
)
def test_other_options_do_not_mix(bulk, words, problem):
    write_lines("in.txt", LINES)
    with pytest.raises(Stopped):
        bulk("input=in.txt", "output=out.txt", blocks=3)
    with pytest.raises(NMTError, match=problem):
        bulk("input=in.txt", "output=out.txt", *words)
    [workers] = bulk("input=in.txt", "output=out.txt", "overwrite=true", *words)
    assert workers.done >= 7


def test_another_model_does_not_mix(bulk, checkpoint):
    write_lines("in.txt", LINES)
    with pytest.raises(Stopped):
        bulk("input=in.txt", "output=out.txt", blocks=3)
    with pytest.raises(NMTError, match=r"with another .*model"):
        bulk("input=in.txt", "output=out.txt", f"run={checkpoint}")


def test_an_edited_input_does_not_mix(bulk):
    write_lines("in.txt", LINES)
    with pytest.raises(Stopped):
        bulk("input=in.txt", "output=out.txt", blocks=7)
    write_lines("in.txt", ["ka", *LINES[1:]])
    with pytest.raises(NMTError, match=r"in\.txt: has changed since"):
        bulk("input=in.txt", "output=out.txt")


@pytest.mark.slow
def test_remote_files(bulk, expected):
    files = fsspec.filesystem("memory")
    files.pipe_file("/in/a.txt", "".join(f"{line}\n" for line in LINES).encode())
    files.pipe_file("/in/sub/b.txt.gz", gzip.compress(b"ka lo\n"))
    with pytest.raises(Stopped):
        bulk("input=memory://in", "output=memory://out", blocks=5)
    [workers] = bulk("input=memory://in", "output=memory://out")
    assert workers.done == 4
    texts = expected([*LINES, "ka lo"])
    assert files.cat_file("/out/a.txt").decode().split("\n")[:-1] == texts[:-1]
    assert gzip.decompress(files.cat_file("/out/sub/b.txt.gz")).decode() == f"{texts[-1]}\n"
    bulk("input=memory://in/*.txt", "output=one")
    bulk("input=file://" + str(Path("one/a.txt").resolve()), "output=two.txt")
    assert Path("one/a.txt").read_text().split("\n")[:-1] == texts[:-1]
    assert Path("two.txt").read_text().count("\n") == len(LINES)
    for name in ("/in", "/out"):
        files.rm(name, recursive=True)


@pytest.mark.slow
def test_two_jobs_do_not_write_one_output(bulk):
    write_lines("in.txt", LINES)
    with (
        only_process(Path("out.txt.blocks"), "output"),
        pytest.raises(NMTError, match="another nmt"),
    ):
        bulk("input=in.txt", "output=out.txt")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", r"in\.jsonl, line 2: not JSON"),
        ("[1]", "line 2: not a record"),
        ('{"body": "ka"}', "line 2: no field text, only body; pass ray.field=NAME"),
        ('{"text": null}', "line 2: the field text is NoneType"),
        ('{"text": "ka", "translation": ""}', "line 2: has a field translation already"),
        ("[" * 100_000, "line 2: not JSON"),
    ],
)
def test_records_without_text(bulk, line, problem):
    write_lines("in.jsonl", ['{"text": "ka"}', line])
    with pytest.raises(NMTError, match=problem):
        bulk("input=in.jsonl", "output=out.jsonl")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"a": ["x"]}, "no field text, only a"),
        ({"text": [1]}, "the column text has type int64"),
        ({"text": ["x"], "translation": ["y"]}, "has a field translation already"),
    ],
)
def test_tables_without_text(bulk, table, problem):
    pq.write_table(pa.table(table), "in.parquet")
    with pytest.raises(NMTError, match=problem):
        bulk("input=in.parquet", "output=out.parquet")


def test_a_line_that_cannot_be_translated_is_named(bulk):
    write_lines("in/a.txt", LINES)
    write_lines("in/b.txt", [*LINES[:11], "<2zz> ka", "ka " * 400_000])
    with pytest.raises(NMTError, match=r"in/b\.txt, line 13: longer than"):
        bulk("input=in", "output=out")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["input=in.txt", "output=in.txt"], "would overwrite the input"),
        (["input=in.txt", "output=folder"], "is a folder"),
        (["input=in.txt", "output=old.txt"], "old.txt exists: pass overwrite=true"),
        (["input=in.txt", "output=out.parquet"], "must have a suffix of the input's format, text"),
        (["input=missing", "output=out"], "No such file"),
        (["input=empty", "output=out"], "no files to translate"),
        (["input=folder", "output=folder/out"], "is in the input folder"),
        (["input=folder", "output=old.txt"], "names several; name a folder"),
        (["input=folder/*.html", "output=out"], "translated as a whole; omit cluster"),
        (["input=folder", "output=out"], "a.html: cluster=ray translates lines, JSONL and Parquet"),
        (["input=folder/*.csv", "output=out"], "nmt cannot read .csv files"),
        (["input=folder/*.en", "output=out"], "its content is"),
        (["input=what://x", "output=out"], "what://x: Protocol not known"),
        (["input=in.txt", "output=out", "threads=2"], "each worker has ray.cpus=1 threads"),
        (["input=in.txt", "output=out", "device=cuda"], "ray.gpus=0 means device=cpu"),
        (["input=in.txt", "output=out", "format=jsonl"], "without scores; omit format=jsonl"),
        (["input=in.txt"], "needs a file or folder"),
        (["text=ka"], "translates files"),
        (["input=page.html", "output=out.html"], "translated as a whole; omit cluster"),
        (["input=in.txt", "output=out", "dry_run=true"], "has no dry run"),
    ],
)
def test_refusals(bulk, words, problem):
    write_lines("in.txt", LINES)
    write_lines("old.txt", ["old"])
    for name in ("a.html", "b.csv"):
        write_lines(f"folder/{name}", ["x"])
    write_lines("folder/c.en", ["<!DOCTYPE html><html>"])
    Path("empty").mkdir()
    with pytest.raises(NMTError, match=problem):
        bulk(*words)
    assert Path("old.txt").read_text() == "old\n"


def test_without_ray_the_command_names_the_extra(nmt, word_model, monkeypatch):
    monkeypatch.setattr(pool, "find_spec", lambda name: None)
    write_lines("in.txt", LINES)
    nmt("translate", "in.txt", str(word_model), "output=out.txt", "cluster=ray").refused("ray")


def test_the_new_field_of_a_record():
    assert (
        with_translation(b'{"text": "a"}\r\n', 'b"\u00e9')
        == '{"text": "a", "translation": "b\\"\u00e9"}\n'
    )


@pytest.mark.parametrize("name", ["out.txt", "memory://full/out.txt"])
def test_a_failed_write_leaves_no_output(here, name):
    def write_half() -> None:
        with places.written(name) as output:
            output.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(NMTError, match=r"cannot write .*No space left"):
        write_half()
    assert not places.exists(name)
    assert not list(here.iterdir())


def test_a_source_that_became_shorter_keeps_the_finished_blocks(bulk):
    write_lines("in.txt", LINES)
    with pytest.raises(Stopped):
        bulk("input=in.txt", "output=out.txt", blocks=6)
    stored = sorted(Path("out.txt.blocks/blocks").rglob("0*"))
    write_lines("in.txt", LINES[:10])
    with pytest.raises(NMTError, match=r"in.txt: has changed since"):
        bulk("input=in.txt", "output=out.txt")
    assert not Path("out.txt").exists()
    assert set(stored) <= set(Path("out.txt.blocks/blocks").rglob("0*"))


def test_an_output_that_another_program_has_written_meanwhile_is_kept(bulk, monkeypatch):
    write_lines("in.txt", LINES)

    def run(self, tasks):
        Path("out.txt").write_text("theirs\n")
        yield from original(self, tasks)

    original = ThisProcess.run
    with monkeypatch.context() as changes:
        changes.setattr(ThisProcess, "run", run)
        with pytest.raises(NMTError, match=r"another program has written it since.*move it away"):
            bulk("input=in.txt", "output=out.txt")
    assert Path("out.txt").read_text() == "theirs\n"
    Path("out.txt").unlink()
    assert bulk("input=in.txt", "output=out.txt") == []
    assert Path("out.txt").exists()


def test_a_command_that_is_refused_leaves_nothing_behind(bulk):
    write_lines("in.txt", LINES)
    Path("out.txt").write_text("theirs\n")
    with pytest.raises(NMTError, match=r"output=out.txt exists"):
        bulk("input=in.txt", "output=out.txt")
    assert not Path("out.txt.blocks").exists()


def test_a_command_killed_right_after_a_join_resumes(bulk, monkeypatch):
    write_lines("in.txt", LINES)

    def stop(self, file):
        raise Stopped

    with monkeypatch.context() as changes:
        changes.setattr(Store, "remove_blocks", stop)
        with pytest.raises(Stopped):
            bulk("input=in.txt", "output=out.txt")
    content = Path("out.txt").read_bytes()
    assert bulk("input=in.txt", "output=out.txt") == []
    assert Path("out.txt").read_bytes() == content
    assert not Path("out.txt.blocks").exists()
