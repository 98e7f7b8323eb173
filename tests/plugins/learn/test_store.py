"""Models that replace each other, whenever a process is killed."""

import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import NMTError
from nmt.files import foreign_files
from nmt.model import load_model
from nmt.plugins.learn.exchange import exchange
from nmt.plugins.learn.store import Record, Store
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
    return Record(number, f"identity {number}", parent, model, True, "better", 1.0)


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
