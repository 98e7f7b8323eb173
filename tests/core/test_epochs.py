"""`epochs=3` is the number of updates in which training sees each pair three times."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from nmt.commands import compose
from nmt.commands.train import COMMAND, with_updates_of_epochs
from nmt.config import BatchingConfig, NMTError, to_tree
from nmt.data import BatchPlanner, UpdateDataModule, open_corpus
from nmt.data.mixing import Mixture
from nmt.training import read_config

LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40)


def planner_for(pairs, micro_batches, mixture=None):
    sources, targets = np.array(pairs).T
    batching = BatchingConfig(tokens_per_update=12 * micro_batches, micro_batches=micro_batches)
    return BatchPlanner(sources, targets, batching, seed=3, mixture=mixture)


def seen(planner, updates, pairs):
    """How often training sees each pair in the first updates, counted one by one."""
    counts = np.zeros(pairs, int)
    for number in range(updates):
        for micro_batch in planner.update(number):
            for row in micro_batch.indices:
                counts[row] += 1
    return counts


@pytest.mark.slow
@given(LENGTHS, st.integers(1, 3), st.integers(1, 3))
def test_each_pair_is_seen_in_each_epoch_and_no_update_is_too_many(pairs, micro_batches, epochs):
    planner = planner_for(pairs, micro_batches)
    updates = planner.updates_of(epochs)
    assert seen(planner, updates, len(pairs)).min() >= epochs
    assert updates == 1 or seen(planner, updates - 1, len(pairs)).min() < epochs


@given(LENGTHS, st.integers(1, 3), st.sampled_from([0.1, 0.25, 0.5, 1.5, 2.1]))
def test_a_part_of_an_epoch_is_that_part_of_its_micro_batches(pairs, micro_batches, epochs):
    planner = planner_for(pairs, micro_batches)
    tenths = round(epochs * 100)
    updates = 1
    while 100 * updates * micro_batches < tenths * planner.micro_batches_per_pass:
        updates += 1
    assert planner.updates_of(epochs) == updates


@pytest.mark.slow
@given(LENGTHS, st.integers(1, 12), st.integers(1, 2), st.data())
def test_an_epoch_of_a_mixture_has_each_pair_at_least_once(pairs, copies, epochs, data):
    cut = data.draw(st.integers(0, len(pairs)))
    bounds = np.array([0, cut, len(pairs)])
    # The first source is seen `copies` / 4 + 1 times as often as the second.
    mixture = Mixture(bounds, np.array([1 + copies / 4, 1.0]), np.ones(2))
    planner = planner_for(pairs, 2, mixture)
    updates = planner.updates_of(epochs)
    counts = seen(planner, updates, len(pairs))
    assert counts.min() >= epochs
    assert counts.sum() >= epochs * planner.sizes.sum()
    if updates > 1:
        assert seen(planner, updates - 1, len(pairs)).sum() < epochs * planner.sizes.sum()


def settled(words, capsys):
    config = with_updates_of_epochs(compose("train", words), Console(stderr=True, soft_wrap=True))
    return config, capsys.readouterr().err


def without_steps(toy):
    return [word for word in toy if not word.startswith("trainer.max_steps=")]


def test_the_number_of_updates_is_that_of_the_corpus(toy, capsys):
    config, message = settled([*without_steps(toy), "epochs=2"], capsys)
    updates = config.trainer.max_steps
    assert message.startswith(
        f"epochs=2 is {updates} updates (trainer.max_steps={updates}); an epoch has "
    )
    planner = UpdateDataModule(open_corpus(Path(config.prepared)), config).planner
    pairs = len(open_corpus(Path(config.prepared)).split("train"))
    assert f"an epoch has {pairs} pairs" in message
    assert seen(planner, updates, pairs).min() == 2
    assert seen(planner, updates - 1, pairs).min() < 2
    # The configuration is that of the same number of updates, typed by hand.
    by_hand = compose("train", [*without_steps(toy), f"trainer.max_steps={updates}"])
    assert to_tree(config) == to_tree(by_hand)
    # It does not depend on the number of devices.
    on_two, _ = settled([*without_steps(toy), "epochs=2", "trainer.devices=2"], capsys)
    assert on_two.trainer.max_steps == updates


def test_smaller_updates_are_more(toy, capsys):
    words = [*without_steps(toy), "epochs=1"]
    few, _ = settled([*words, "batching.tokens_per_update=960"], capsys)
    many, _ = settled(words, capsys)
    assert many.trainer.max_steps > 3 * few.trainer.max_steps


def test_a_schedule_ends_with_the_last_epoch(toy, capsys):
    words = [*without_steps(toy), "optim.schedule=linear", "optim.warmup=2"]
    config, message = settled([*words, "epochs=1"], capsys)
    assert config.optim.decay_steps == config.trainer.max_steps
    assert "notice" not in message
    config, _ = settled([*words, "epochs=1", "optim.decay_steps=9000"], capsys)
    assert config.optim.decay_steps == 9000
    config, message = settled([*words, "epochs=1", "optim.warmup=4000"], capsys)
    assert config.optim.warmup == max(1, config.trainer.max_steps // 10)
    warmup = f"optim.warmup={config.optim.warmup}"
    notice = f"optim.warmup=4000 would not end within these updates, so it is {warmup}"
    assert f"notice: {notice}" in message


def test_a_run_records_updates_and_resumes_with_either_key(toy, tmp_path, capsys):
    words = [
        *without_steps(toy),
        "optim.warmup=1",
        "validation.bleu_sentences=0",
        f"run={tmp_path / 'run'}",
    ]
    assert not COMMAND.run(compose("train", [*words, "epochs=0.03"]))
    recorded = read_config(tmp_path / "run")
    assert recorded["epochs"] is None
    updates = recorded["trainer"]["max_steps"]
    assert 1 <= updates < 10
    for again in (f"trainer.max_steps={updates}", "max_epochs=0.03"):
        capsys.readouterr()
        assert not COMMAND.run(compose("train", [*words, again]))
        assert f"is already trained for {updates} updates" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["epochs=3", "trainer.max_steps=5"],
            "epochs=3: trainer.max_steps also sets the number of",
        ),
        (
            ["trainer.max_epochs=3", "minutes=5"],
            "epochs=3: minutes also sets the number of updates;",
        ),
        (["epochs=0"], "epochs=0.0: must be a number between 0.001 and 1,000,000, or null"),
        (["max_epochs=many"], "epochs=many: must be a number between"),
        (["epochs=1,2"], "epochs=1,2: give one value"),
        (
            ["experiment=both"],
            "conf/experiment/both.yaml, line 2: epochs=2: the experiment also sets minutes; pass",
        ),
    ],
)
def test_contradictions_are_one_line(words, message, experiments):
    with pytest.raises(NMTError) as error:
        compose("train", words)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.fixture
def experiments(here):
    """Experiments that set the number of updates."""
    folder = here / "conf/experiment"
    folder.mkdir(parents=True)
    contents = {
        "steps": "trainer: {max_steps: 500}",
        "epochs": "epochs: 2",
        "minutes": "minutes: 30",
        "both": "epochs: 2\nminutes: 30",
    }
    for name, content in contents.items():
        (folder / f"{name}.yaml").write_text(f"# @package _global_\n{content}\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "epochs", "minutes"),
    [
        (["experiment=steps", "epochs=3"], 3, None),
        (["experiment=epochs"], 2, None),
        (["experiment=epochs", "epochs=3"], 3, None),
        (["experiment=epochs", "trainer.max_steps=7"], None, None),
        (["experiment=epochs", "minutes=5"], None, 5),
        (["experiment=minutes", "epochs=3"], 3, None),
        (["experiment=epochs", "epochs=null"], None, None),
        (["epochs=3", "minutes=null"], 3, None),
        # A schedule that ends, with a time limit: the epochs decide.
        (["epochs=3", "optim.schedule=linear", "trainer.max_time=2h"], 3, None),
        (["max_epochs=3"], 3, None),
    ],
)
def test_the_command_line_takes_precedence_over_an_experiment(words, epochs, minutes, experiments):
    config = compose("train", ["data=files", *words])
    assert (config.epochs, config.minutes) == (epochs, minutes)
