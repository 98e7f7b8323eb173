"""Stages run real commands of nmt: what is done stays done, what is not is run again, and what it took is known."""

import json

import pytest
from rich.console import Console

from nmt.commands.sweep import Processes
from nmt.errors import NMTError
from nmt.reproduce.stages import Record, Stage, Stages

HERE = {"commit": "abc", "machine": {}, "packages": {}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(folder, origin=HERE):
    return Stages(folder / "stages", origin, Processes(), Console(quiet=True))


def version(folder, name="a", *more):
    """A stage that takes no time to speak of."""
    return Stage(name, ("--version", *more), folder / f"{name}.txt", captured=True)


def test_a_finished_stage_is_not_run_again(folder):
    stage = version(folder)
    assert str(stage) == f"nmt --version > {stage.product}"
    assert make(folder).run([stage], "row")
    assert stage.product.read_text().startswith("nmt ")
    stage.product.write_text("mine")
    stages = make(folder, {"commit": "def"})
    assert stages.run([stage], "row")
    assert stage.product.read_text() == "mine"
    (session,) = stages.record(stage).sessions
    assert session.origin == HERE
    assert stages.record(stage).seconds == session.seconds > 0


def test_what_is_gone_is_run_again_with_all_behind_it(folder):
    first, second = version(folder), version(folder, "b")
    assert make(folder).run([first, second], "row")
    second.product.write_text("old")
    first.product.unlink()
    assert not make(folder).is_done(first)
    assert make(folder).run([first, second], "row")
    assert second.product.read_text() != "old"


def test_what_was_done_as_another_command_is_not_taken_for_this_one(folder):
    done, record = version(folder), folder / "stages" / "a.json"
    assert make(folder).run([done], "row")
    written = record.read_text()
    other = Stage("a", ("--help",), done.product, captured=True)
    with pytest.raises(
        NMTError, match=r"done as `nmt --version > \S+`, and would now be `nmt --help > \S+`; pass work=OTHER"
    ):
        make(folder).run([other], "row")
    assert record.read_text() == written


def test_what_failed_may_be_asked_for_differently_and_what_it_took_is_not_forgotten(folder):
    product = folder / "a.txt"
    wrong = Stage("a", ("score", "hypothesis=nowhere"), product, captured=True)
    assert not make(folder).run([wrong], "row")
    right = Stage("a", ("--version",), product, captured=True)
    stages = make(folder)
    assert stages.run([right], "row")
    first, second = stages.record(right).sessions
    assert stages.record(right).seconds == pytest.approx(first.seconds + second.seconds)
    assert json.loads((folder / "stages" / "a.json").read_text())["command"] == str(right)


def test_a_stage_may_go_on_with_other_devices(folder):
    stages = [Stage("a", ("--version", f"trainer.devices={many}"), folder / "a.txt") for many in (8, 4)]
    assert make(folder).path(stages[0]) == make(folder).path(stages[1])
    make(folder).write(stages[0], Record(str(stages[0]), True))
    (folder / "a.txt").touch()
    assert make(folder).is_done(stages[1])


def test_a_stage_that_failed_leaves_nothing_and_ends_its_row(folder, capfd):
    failing = Stage(
        "f", ("score", "reference=nowhere", "hypothesis=nowhere", "format=json"), folder / "f.json", captured=True
    )
    behind = version(folder, "b")
    stages = make(folder)
    assert not stages.run([failing, behind], "row")
    assert stages.failed == {"f"}
    assert "nowhere: No such file or directory" in capfd.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["stages"]
    assert not stages.run([failing, behind], "another row")
    assert capfd.readouterr().err == ""  # not tried twice by one command
    failing.product.with_name("nowhere").write_text("x\n")
    again = make(folder)
    assert again.run([failing, behind], "row")
    assert [item["value"] for item in json.loads(failing.product.read_text())][1] == 100
    first, second = again.record(failing).sessions
    assert again.record(failing).seconds == pytest.approx(first.seconds + second.seconds)


def test_a_product_that_does_not_serve_is_not_done(folder):
    def refuse():
        raise NMTError("2,737 lines")

    stage = Stage("a", ("--version",), folder / "a", captured=True, check=refuse)
    with pytest.raises(NMTError, match="2,737"):
        make(folder).run([stage], "row")
    assert not make(folder).is_done(stage)


def test_a_broken_record_is_named(folder):
    stage = version(folder)
    (folder / "stages").mkdir()
    (folder / "stages" / "a.json").write_text("{")
    with pytest.raises(NMTError, match=r"a\.json.*remove it"):
        make(folder).is_done(stage)
