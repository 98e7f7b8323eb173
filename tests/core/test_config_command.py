"""`nmt config`: what a run used, in words that can be typed again."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

from nmt.commands import COMMANDS, compose
from nmt.commands.config import differences_from_defaults, recorded_tree, run
from nmt.config import NMTError, flatten, literal, parse, set_value, to_tree
from nmt.training import read_config

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=9),
    lambda items: (
        st.lists(items, max_size=3) | st.dictionaries(st.from_regex(r"\A[a-z]{1,5}\Z"), items)
    ),
    max_leaves=5,
)


def show(capsys, *words):
    run(compose("config", [*map(str, words)]))
    return capsys.readouterr().out


def words_in(output):
    """The words of a list of differences, as a shell reads them."""
    words = []
    for line in output.splitlines():
        word, is_bracket, _ = line.partition(" (default ")
        assert is_bracket
        words += shlex.split(word)
    return words


@given(VALUES)
def test_a_value_is_written_as_hydra_reads_it(value):
    assert parse(set_value("key", value)).value() == value


@pytest.mark.slow
def test_the_words_give_the_same_configuration_again(finished, capsys):
    words = words_in(show(capsys, finished))
    assert to_tree(compose("train", words)) == read_config(finished)
    # Each word is needed; a sample of them, because composing takes time.
    for word in words[::6]:
        others = [other for other in words if other != word]
        try:
            tree = to_tree(compose("train", others))
        except NMTError:
            continue
        assert tree != read_config(finished), word


def test_values_that_follow_from_other_keys_are_left_out(finished, capsys):
    keys = [word.partition("=")[0] for word in words_in(show(capsys, finished))]
    assert "model.d_model" in keys
    assert not {"model.d_k", "model.d_v"}.intersection(keys)


def test_the_whole_configuration_is_an_experiment(finished, capsys, here):
    text = show(capsys, finished, "all=true")
    file = Path("conf/experiment/again.yaml")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert to_tree(compose("train", ["experiment=again"])) == read_config(finished)


def copy_of_config(run_folder, copy, **changes):
    """A run that has not saved anything yet, with other values of some keys."""
    tree = read_config(run_folder)
    for key, value in changes.items():
        group, _, name = key.partition("__")
        tree[group][name] = value
    copy.mkdir(parents=True)
    (copy / "config.yaml").write_text(yaml.safe_dump(literal(tree)))
    return copy


@pytest.mark.slow
def test_two_runs_are_compared_by_the_keys_that_users_set(finished, capsys, tmp_path):
    other = copy_of_config(
        finished, tmp_path / "other", model__d_model=32, model__d_k=16, model__d_v=16
    )
    assert show(capsys, finished, other) == f"model.d_model=16 ({other}: 32)\n"
    assert show(capsys, other, finished) == f"model.d_model=32 ({finished}: 16)\n"
    assert show(capsys, finished, finished) == ""


@pytest.mark.slow
def test_keys_of_another_version_are_listed(finished, capsys, tmp_path):
    other = copy_of_config(finished, tmp_path / "other", model__mood="happy")
    file = other / "config.yaml"
    file.write_text(file.read_text() + "later.key: 3\n")
    output = show(capsys, other)
    assert "model.mood=happy (default null)\n" in output
    assert "later.key=3 (default null)\n" in output
    assert f"model.mood=null ({other}: happy)\n" in show(capsys, finished, other)


def test_a_value_cannot_control_the_terminal(finished, capsys, tmp_path):
    other = copy_of_config(finished, tmp_path / "other", data__path="\x1b[2Jb c")
    output = show(capsys, other)
    assert "\x1b" not in output
    assert "data.path=" in output


@pytest.mark.slow
def test_a_model_directory_shows_what_its_run_used(finished, capsys):
    assert show(capsys, finished / "model") == show(capsys, finished)


@pytest.mark.slow
def test_a_corpus_shows_its_own_keys(finished, capsys):
    corpus = read_config(finished)["prepared"]
    words = words_in(show(capsys, corpus))
    tree = recorded_tree(corpus)
    assert set(tree) == {"seed", "data", "tokenizer"}
    again = to_tree(compose("preprocess", words))
    assert {key: again[key] for key in tree} == tree
    # A run and its corpus are compared by the keys that both record.
    assert show(capsys, corpus, finished) == ""


def test_an_imported_model_shows_its_shape(word_model, capsys):
    words = words_in(show(capsys, word_model))
    assert all(word.startswith(("model.", "tokenizer.")) for word in words)
    keys = flatten(recorded_tree(str(word_model)))
    for word in words:
        key, _, _ = word.partition("=")
        assert parse(word).value() == keys[key]


@pytest.mark.slow
def test_json_has_the_configuration_and_the_differences(finished, capsys):
    report = json.loads(show(capsys, finished, "format=json"))
    assert report["config"] == read_config(finished)
    expected = differences_from_defaults(read_config(finished))
    rows = [(row["key"], row["value"], row["default"]) for row in report["differences"]]
    assert rows == [(item.key, item.value, item.other) for item in expected]
    assert [
        row["other"]
        for row in json.loads(show(capsys, finished, finished, "format=json"))["differences"]
    ] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: no such file or folder; `nmt runs` lists runs and corpora"),
        ([], "runs/latest: no such run; train a model first"),
        (["."], "run=.: neither a run nor a model directory"),
    ],
)
def test_mistakes_are_one_line(words, message, here):
    with pytest.raises(NMTError) as error:
        run(compose("config", words))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_one_configuration_is_printed_at_a_time(finished):
    with pytest.raises(NMTError, match="all=true: prints one configuration"):
        run(compose("config", [str(finished), str(finished), "all=true"]))
    with pytest.raises(NMTError, match="takes one run, or two to compare"):
        compose("config", ["a", "b", "c"])


def test_the_command_is_registered():
    assert COMMANDS["config"].options["--all"] == "all=true"
