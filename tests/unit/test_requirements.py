"""What scale=paper needs, and the one screen that says what of it is missing."""

import io
from dataclasses import asdict, replace

import pytest
from rich.console import Console

from nmt.commands import compose
from nmt.errors import NMTError
from nmt.report.content import duration
from nmt.reproduce.complexity.measuring import GRIDS, Expected, needed_memory
from nmt.reproduce.reproduce import alone, plan, reproduce
from nmt.reproduce.requirements import checkpoint_bytes, corpus, devices, disk, expected_flops, hours, requirements
from nmt.reproduce.scales import LAPTOP, PAPER
from nmt.reproduce.speed import Speed

ONE = Speed("Loom", 1, 1e14)
EIGHT = replace(ONE, gpus=8)


def config(*words):
    return compose("reproduce", ["table2", *words])


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


def test_a_local_copy_must_hold_what_the_table_is_made_from(tmp_path, no_hub):
    own = config(f"work={tmp_path / 'work'}")
    assert not corpus(own, PAPER, "en-fr").there
    assert "wmt14=FOLDER" in corpus(own, PAPER, "en-fr").said
    local = config(f"work={tmp_path / 'work'}", f"wmt14={tmp_path}")
    for split in ("train", "validation", "test"):
        found = corpus(local, PAPER, "en-fr")
        assert not found.there
        assert f"fr-en/{split}-*.parquet" in found.said
        (tmp_path / "fr-en").mkdir(exist_ok=True)
        (tmp_path / "fr-en" / f"{split}-00000-of-00001.parquet").touch()
    assert corpus(local, PAPER, "en-fr").there
    assert not corpus(local, PAPER, "en-de").there
    (tmp_path / "work" / "data" / "en-de").mkdir(parents=True)
    (tmp_path / "work" / "data" / "en-de" / "manifest.json").touch()
    assert corpus(own, PAPER, "en-de").there


@pytest.mark.parametrize(
    ("words", "gpus", "there"),
    [
        ((), 0, False),
        ((), 8, True),
        ((), 4, True),
        ((), 6, False),
        (("devices=4",), 6, True),
        (("devices=2",), 1, False),
    ],
)
def test_gpus_share_the_papers_eight_micro_batches(words, gpus, there):
    assert devices(config(*words), replace(ONE, gpus=gpus)).there == there


def test_hours_are_those_of_the_operations(tmp_path):
    """Kaplan et al. 2020: about 6 operations a weight and token; base has 63 M weights, each met by one side's."""
    own = config("rows=[en-de-base]", f"work={tmp_path}")
    ((_, rows),) = plan(own, PAPER)
    flops = expected_flops(rows[0].training)
    assert flops == pytest.approx(100_000 * 25_000 * 6 * 63e6, rel=0.1)
    assert hours(own, rows, ONE).said.startswith(f"about {duration(flops / 1e14)} on 1 GPU to")
    assert hours(own, rows, EIGHT).said.startswith(f"about {duration(flops / 8e14)} on 8 GPUs to")


def test_disk_counts_what_lies_there_already(tmp_path, monkeypatch):
    import shutil

    own = config("rows=[en-de-base]", f"work={tmp_path / 'work'}")
    ((_, rows),) = plan(own, PAPER)
    usage = shutil.disk_usage(tmp_path)
    needed = checkpoint_bytes(rows[0].training) + 4_500_000 * 1200
    assert checkpoint_bytes(rows[0].training) == pytest.approx(63.05e6 * 12 * 7, rel=0.01)  # 5 kept, the best, one more
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=needed - 1000))
    assert not disk(own, rows).there
    for name, there in (("runs/en-fr-big", False), ("runs/en-de-base", True)):  # another row's space is not this one's
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / "part").write_bytes(bytes(1000))
        assert disk(own, rows).there == there


@pytest.mark.slow
def test_what_is_missing_is_told_in_one_screen_and_nothing_is_begun(tmp_path, no_hub, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with pytest.raises(NMTError, match=r"missing here: en-de, en-fr, GPUs(, disk)?; nothing was begun"):
        reproduce(config(), PAPER, Console(file=said, width=200))
    assert [line.split()[:2] for line in said.getvalue().splitlines()[1:]] == [
        ["en-de", "MISSING"],
        ["en-fr", "MISSING"],
        ["GPUs", "MISSING"],
        ["disk", said.getvalue().splitlines()[4].split()[1]],
        ["time", "needed"],
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_parser_needs_its_treebank_and_what_training_needs(tmp_path, monkeypatch):
    monkeypatch.setattr("nmt.reproduce.requirements.measure_speed", lambda precision: EIGHT)
    own = compose("reproduce", ["table4", f"work={tmp_path}"])
    found = requirements(own, PAPER, plan(own, PAPER), Console(quiet=True))
    assert [(one.name, one.there) for one in found] == [
        *(("table4", False), ("GPUs", True), ("disk", True), ("time", True))
    ]
    assert "treebank=FOLDER" in found[0].said


@pytest.mark.parametrize(("free", "there"), [(8e9, False), (9e9, True)])
def test_layers_need_memory_for_the_largest_of_them(tmp_path, monkeypatch, free, there):
    """Table 1's longest sequence: two matrices of 8 heads, 8192 x 8192, of 2 sentences in 4 bytes are 8.6 GB."""
    needed = needed_memory(GRIDS["paper"])
    assert needed == 2 * 8 * 8192**2 * 2 * 4
    answer = asdict(Expected(seconds=600, memory=needed, free=int(free)))
    monkeypatch.setattr("nmt.reproduce.requirements.ask", lambda module, grid: answer)
    own = compose("reproduce", ["table1", f"work={tmp_path}"])
    (found,) = requirements(own, PAPER, plan(own, PAPER), Console(quiet=True))
    assert (found.name, found.there) == ("layers", there)
    assert found.said == f"about 8.6 GB of memory, {free / 1e9:.1f} GB are free; about 10 min"


def test_two_reproductions_do_not_write_the_same_files(tmp_path):
    with alone(tmp_path / "work"):
        with pytest.raises(NMTError, match="another nmt reproduce is at work there"), alone(tmp_path / "work"):
            pass
        with alone(tmp_path / "other"):
            pass
    with alone(tmp_path / "work"):
        pass


def test_a_row_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(NMTError, match="en-de-base, en-de-big, en-fr-base, en-fr-big"):
        plan(config("rows=[en-it]"), LAPTOP)


def composed(stages):
    """The configuration of each stage."""
    return {stage.words[0]: compose(stage.words[0], list(stage.words[1:])) for stage in stages}


def test_the_stages_of_a_row_are_the_papers_protocol():
    """English-French, big: the row whose settings differ most from the defaults."""
    ((_, (row,)),) = plan(config("rows=[en-fr-big]", "seed=3"), PAPER)
    found = composed(row.stages)
    train = found["train"]
    assert (train.data.subset, train.tokenizer.kind, train.tokenizer.vocabulary_size) == ("fr-en", "wordpiece", 32_000)
    assert (train.model.d_model, train.model.dropout, train.trainer["max_steps"]) == (1024, 0.1, 300_000)
    assert (train.checkpoints.keep, train.checkpoints.every_steps, train.checkpoints.every_minutes) == (20, 600, None)
    assert (train.batching.tokens_per_update, train.optim.warmup, train.seed) == (25_000, 4000, 3)
    decode = found["translate"].decode
    assert (decode.beam_size, decode.length_penalty, decode.max_extra_length) == (4, 0.6, 50)
    assert (found["score"].metrics, found["score"].language) == (["bleu", "tokenised"], "fr")
    assert found["preprocess"].prepared == train.prepared
    assert found["translate"].checkpoint == [train.run]
    assert found["translate"].output == found["score"].hypothesis


def test_a_laptop_divides_the_papers_sizes_and_norms_before_sub_layers():
    ((_, (row,)),) = plan(config("rows=[en-fr-big]"), LAPTOP)
    small = vars(composed(row.stages)["train"].model)
    papers = vars(compose("train", ["model=big", "model.dropout=0.1"]).model)
    by = dict.fromkeys(("d_model", "d_ff", "d_k", "d_v"), 4) | dict.fromkeys(("encoder_layers", "decoder_layers"), 2)
    assert {key: value * by.get(key, 1) if key in by else value for key, value in small.items()} == {
        **papers,
        "norm": "pre",
    }
