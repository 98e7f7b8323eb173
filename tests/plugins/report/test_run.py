"""A run's folder is read as it is: unfinished, cut off, or made by a stranger."""

import json
import os

import pytest
import yaml

from nmt.config import ModelConfig
from nmt.errors import NMTError
from nmt.plugins.report.run import find_run, open_run, read_rows

HEADER = "step,loss,learning_rate,tokens_per_second,seconds,valid_loss\n"
CONFIG = {"name": "x", "prepared": "nowhere", "trainer": {"max_steps": 100}, "model": {}, "data": {}}
SCORE = {"metric": "bleu", "name": "BLEU", "value": 12.5, "sentences": 4, "signature": "nrefs:1|version:2"}
FACTS = {"tokens": 4000, "seconds": 61.5, "devices": "1 x cpu", "versions": {"nmt": "0.1", "torch": "2"}}


@pytest.fixture
def run(tmp_path):
    """A run of three reports and nothing else."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "metrics.csv").write_text(HEADER + "10,5.5,0.1,1000,1.5,\n20,4.5,0.2,1100,3,\n20,,,,,4.25\n")
    return tmp_path


def write_model(run, **training):
    """A model directory with this training in its description, and no weights."""
    description = {
        **{"format_version": 1, "model": vars(ModelConfig(name="m")), "vocabulary_size": 300, "source": "en"},
        **{"target": "de", "tokenizer": "0" * 64, "training": {"corpus": "abc", **training}},
    }
    (run / "model").mkdir(exist_ok=True)
    (run / "model" / "config.json").write_text(json.dumps(description))


def test_columns_are_read_by_name_and_empty_cells_are_none(run):
    opened = open_run(run, None)
    assert opened.series("loss") == [(10, 5.5), (20, 4.5)]
    assert (opened.series("valid_loss"), opened.series("mfu")) == ([(20, 4.25)], [])
    assert (opened.last("seconds"), opened.last("cost")) == (3, None)


@pytest.mark.parametrize("tail", ["30", "30,4.1,0.3,1200,4.", '30,"4.1', "\0\0\0\0", "x,4,,,,\n", "30,x,1,2,3,4,5,6\n"])
def test_a_row_that_is_cut_off_or_of_another_make_is_left_out(run, tail):
    whole = read_rows(run)
    with (run / "metrics.csv").open("a") as file:
        file.write(tail)
    assert read_rows(run) == whole


def test_what_is_no_run_or_has_nothing_logged_is_refused(run, tmp_path_factory, monkeypatch):
    (run / "metrics.csv").write_text(HEADER + "10,5")
    with pytest.raises(NMTError, match="nothing is logged"):
        read_rows(run)
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(NMTError, match=r"not a training run \(no config.yaml\)"):
        find_run(str(empty))
    monkeypatch.chdir(empty)  # there may be runs where the tests are started
    with pytest.raises(NMTError, match="nmt train"):
        find_run("runs/latest")


def test_an_unfinished_run_is_running_until_it_has_been_silent_for_long(run):
    opened = open_run(run, None)
    assert (opened.update, opened.updates) == (20, 100)
    assert opened.state(opened.written + 5) == "running"
    assert opened.state(opened.written + 3601) == "stopped"


def test_a_run_is_finished_by_a_model_of_its_last_update(run):
    for updates, state in ((100, "finished"), (20, "stopped"), (10, "running")):
        write_model(run, updates=updates)
        os.utime(run / "metrics.csv", (1000, 1000))
        opened = open_run(run, None)
        assert (opened.state(1001), opened.model.updates) == (state, updates)


def test_the_model_directory_has_the_facts_of_its_training_and_one_of_other_types_none(run):
    write_model(run, updates=30, averaged=[10, 20, 30], config={}, **FACTS, score=SCORE)
    facts = open_run(run, None).model
    assert (facts.tokens, facts.devices, facts.versions) == (4000, "1 x cpu", FACTS["versions"])
    assert vars(facts.score) == SCORE
    (run / "environment.json").write_text("{")
    for broken in ({"updates": "x"}, {"tokens": "x"}, {"versions": {"nmt": 1}}, {"score": 1}):
        write_model(run, **{"updates": 30, **broken})
        assert (open_run(run, None).model, open_run(run, None).environment) == (None, {})


def test_a_corpus_that_moved_is_named_and_one_that_was_asked_for_is_needed(run):
    assert "nowhere" in open_run(run, None).corpus_problem
    with pytest.raises(NMTError, match="elsewhere"):
        open_run(run, "elsewhere")


def test_a_strangers_run_ends_in_a_line(run):
    for file, content in (
        ("metrics.csv", f"step,loss\n10,{'x' * 200_000}\n"),
        ("config.yaml", "trainer: [1]\n"),
        ("config.yaml", "a: &a [x]\nb: [*a, *a]\n"),
    ):
        (run / file).write_text(content)
        with pytest.raises(NMTError, match=file) as raised:
            open_run(run, None)
        assert "\n" not in str(raised.value)
