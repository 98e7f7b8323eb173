"""Models that replace each other, whenever a process is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from nmt.errors import NMTError
from nmt.files import foreign_files, only_process, read_description
from nmt.model import load_model
from nmt.plugins.learn.exchange import exchange
from nmt.plugins.learn.store import Record, Store
from nmt.training.delivery import moved_link
from tests.conftest import write_random_model

WEIGHTS = "model.safetensors"


@pytest.fixture
def run(here: Path) -> Path:
    """A run with a model, and another model of the same shape beside it."""
    (here / "run").mkdir()
    write_random_model(here / "run" / "model")
    write_random_model(here / "other", d_ff=16)
    content = bytearray((here / "other" / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (here / "other" / WEIGHTS).write_bytes(content)
    (here / "run" / "model.spm").unlink()
    return here / "run"


def record_of(number: int, parent: str, model: str) -> Record:
    return Record(
        number,
        f"identity {number}",
        parent,
        model,
        True,
        "better",
        1.0,
        corrections={"training": 7},
        tests={
            "held_out": {"before": 1.0, "after": 2.0},
            "general": {"before": 4.0, "after": 3.5},
        },
    )


def learn_other(run: Path) -> tuple[str, str]:
    """Keep the other model and use it; returns the hashes before and after."""
    store = Store(str(run))
    store.open()
    parent = store.keep(store.model)
    model = store.keep(Path("other"))
    store.write(record_of(1, parent, model))
    store.use(model)
    return parent, model


def test_undo_restores_the_same_bytes(run: Path):
    before = {path.name: path.read_bytes() for path in (run / "model").iterdir()}
    _, model = learn_other(run)
    store = Store(str(run))
    assert store.current() == model
    latest = store.latest()
    assert latest is not None
    store.use(latest.parent)
    assert {path.name: path.read_bytes() for path in (run / "model").iterdir()} == before
    assert store.latest() is None
    assert [is_part for _, is_part in store.history()] == [False]
    store.use(model)
    assert [is_part for _, is_part in store.history()] == [True]


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_undo_restores_all_files_but_exports(run: Path):
    """Also files that the model received after it was kept, such as those of `nmt calibrate`."""
    model = run / "model"
    Store(str(run)).keep(model)
    (model / "README.md").write_text("![chart](quality.svg)\n")
    (model / "quality.json").write_text("{}\n")
    (model / "quality.svg").write_text("<svg/>\n")
    (model / "ctranslate2").mkdir()
    before = contents_of(model)
    parent, learned = learn_other(run)
    (model / "quality.json").write_text('{"learned": true}\n')
    after = contents_of(model)
    store = Store(str(run))
    store.use(parent)
    assert contents_of(model) == before
    store.use(learned)
    assert contents_of(model) == after


def test_an_edited_card_does_not_change_the_kept_one(run: Path):
    """An editor may write into the file instead of replacing it."""
    parent, _ = learn_other(run)
    store = Store(str(run))
    store.use(parent)
    card = run / "model" / "config.json"
    kept = (store.folder_of(parent) / card.name).read_bytes()
    with card.open("ab") as file:
        file.write(b" ")
    assert (store.folder_of(parent) / card.name).read_bytes() == kept


def test_the_chain_of_models(run: Path):
    store = Store(str(run))
    for record in (record_of(1, "a", "b"), record_of(2, "b", "c"), record_of(3, "b", "d")):
        store.write(record)
    chains = {}
    for weights in "abcd":
        store.current = lambda weights=weights: weights
        chains[weights] = [record.number for record, is_part in store.history() if is_part]
    assert chains == {"a": [], "b": [1], "c": [1, 2], "d": [1, 3]}


def damage(number: int) -> None:
    Path("run", "learned", str(number), "record.json").write_text('{"number": ')


def learn_twice(run: Path) -> list[str]:
    """Learn as `nmt learn` does, whose models say what was before; returns all weights."""
    store = Store(str(run))
    store.open()
    weights = [store.keep(store.model)]
    for number in (1, 2):
        folder = Path(f"learned-{number}")
        shutil.copytree(run / "model", folder)
        content = bytearray((folder / WEIGHTS).read_bytes())
        content[-number] ^= 1
        (folder / WEIGHTS).write_bytes(content)
        description = read_description(folder)
        description.training["learned"] = {"strength": 1.0, "parent": weights[-1]}
        (folder / "config.json").write_text(json.dumps(asdict(description)))
        weights.append(store.keep(folder))
        store.write(record_of(number, weights[-2], weights[-1]))
        store.use(weights[-1])
    return weights


def test_undo_without_a_readable_record(run: Path, nmt):
    weights = learn_twice(run)
    damage(2)
    _, first, second = nmt("learn", "run", "list=true").out.splitlines()
    assert first.startswith("1\tin use\t")
    assert first.endswith("\t7\t1.00 -> 2.00\t4.00 -> 3.50\tbetter")
    assert second.startswith("2\tunreadable\t")
    shutil.rmtree(run / "learned" / "2")
    assert nmt("learn", "run", "undo=true").code == 0
    assert Store("run").current() == weights[1]
    damage(1)
    assert nmt("learn", "run", "undo=true").code == 0
    assert Store("run").current() == weights[0]


@pytest.mark.slow
def test_nothing_to_undo(run: Path, nmt):
    nmt("learn", "run", "undo=true").refused("its model has not learned anything")
    weights = learn_twice(run)
    for _ in range(2):
        assert nmt("learn", "run", "undo=true").code == 0
    nmt("learn", "run", "undo=true").refused("nothing to undo: all learnings have been undone")
    for number in (1, 2):
        shutil.rmtree(run / "learned" / str(number))
    refused = nmt("learn", "run", "undo=true")
    refused.refused("no record says which model was before; 2 kept in run/learned/models")
    command = refused.err.split("`")[1]
    subprocess.run(command, shell=True, check=True)
    assert Store("run").current() in weights[1:]


def test_the_model_before_was_pruned(run: Path, nmt):
    learn_twice(run)
    assert nmt("learn", "run", "prune=true").code == 0
    nmt("learn", "run", "undo=true").refused("it was removed, so it cannot be used again")


@pytest.mark.slow
def test_what_killed_commands_left_is_removed(run: Path, nmt):
    learn_twice(run)
    home = run / "learned"
    # 2: its record was removed by hand. 3: killed. 4: the worker of a killed command still runs.
    (home / "2" / "record.json").rename(home / "2" / "worse.tsv")
    (home / "3" / ".corpus.0123abcd.nmt-tmp").mkdir(parents=True)
    (home / "4" / "run").mkdir(parents=True)
    (home / "models" / ".aa.0123abcd.nmt-tmp").mkdir()
    for number in (3, 4):
        (home / str(number) / "identity").write_text(f"attempt {number}")
    with only_process(home / "4" / "run", "run"):
        (home / "4" / "run" / "config.yaml").write_text("")
        Store("run").remove_unfinished(but="attempt 3")
        assert {path.name for path in home.glob("?")} == {"1", "2", "3", "4"}
        assert not [*home.rglob("models/.*")]
        pruned = nmt("learn", "run", "prune=true")
        assert "removed unfinished learnings: 1" in pruned.err
        assert {path.name for path in home.glob("?")} == {"1", "2", "4"}
    Store("run").remove_unfinished()
    assert {path.name for path in home.glob("?")} == {"1", "2"}


def test_the_training_of_a_learning_is_not_the_latest_run(run: Path, here: Path):
    Store("run").open()
    inner = run / "learned" / "3" / "run"
    inner.mkdir(parents=True)
    assert moved_link(inner.relative_to(here)) == ""
    assert not [*here.rglob("latest")]
    assert moved_link(Path("run")) == "; latest now leads to run"


def killed_at(event: int, run: Path) -> bool:
    """Learn in a child process that is killed at an event of the file system; False if it ends."""
    child = os.fork()
    if not child:
        count = 0

        def kill(name: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            if name.startswith(("os.", "shutil.", "open")):
                count += 1
                if count == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        learn_other(run)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.slow
def test_a_killed_process_leaves_the_old_or_the_new_model(run: Path):
    original = shutil.copytree(run, "original")
    parent = Store(str(run)).current()
    event = 0
    seen = set()
    while True:
        event += 1
        shutil.rmtree(run)
        shutil.copytree(original, run)
        was_killed = killed_at(event, run)
        load_model(run / "model")
        seen.add(Store(str(run)).current())
        # The same command completes the work.
        _, model = learn_other(run)
        assert Store(str(run)).current() == model
        if not was_killed:
            break
    assert event > 20
    assert seen == {parent, model}


def test_exchanged_folders(here: Path):
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "file").write_text(name)
    assert exchange(Path("a"), Path("b"))
    assert (Path("a/file").read_text(), Path("b/file").read_text()) == ("b", "a")
    with pytest.raises(NMTError, match="cannot write missing"):
        exchange(Path("a"), Path("missing"))


def test_a_damaged_model_is_not_used(run: Path):
    parent, model = learn_other(run)
    store = Store(str(run))
    path = store.folder_of(parent) / WEIGHTS
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])
    with pytest.raises(NMTError, match="has changed since"):
        store.use(parent)
    assert store.current() == model


def test_nmt_may_delete_a_run_that_has_learned(run: Path):
    learn_other(run)
    assert [*foreign_files(run, "run")] == []


def test_the_list_has_dates_and_scores(run: Path, nmt):
    learn_other(run)
    store = Store(str(run))
    [record] = store.records()
    scores = {"before": 20.5, "after": 25.25}
    tests = {"held_out": scores, "general": {"before": 50.0, "after": 49.5}}
    store.write(replace(record, tests=tests, corrections={"training": 68}))
    os.utime(store.path_of(record), (1_800_000_000, 1_800_000_000))
    header, row = nmt("learn", str(run), "list=true").out.splitlines()
    cells = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert cells.pop("date").startswith("2027-01-1")
    assert cells == {
        "number": "1",
        "state": "in use",
        "corrections": "68",
        "held-out": "20.50 -> 25.25",
        "general": "50.00 -> 49.50",
        "verdict": "better",
    }
