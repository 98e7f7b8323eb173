"""The commands behind the rows of the tables. Scales differ only in sizes."""

from functools import cache

import pytest
from plan import read_options
from reproduce import main, plan

from nmt.commands import compose


@cache
def rows(*words):
    return {row.name: row for part in plan(read_options(list(words))).values() for row in part}


def test_commands_follow_the_papers_protocol():
    """English-French, big: the row whose settings differ most from the defaults."""
    row = rows("table2", "rows=[en-fr-big]", "seed=3")["en-fr-big"]
    commands = {command[1]: compose(command[1], command[2:]) for command in row.commands}
    train, decode, score = (
        commands["train"],
        commands["translate"].translator.decode,
        commands["score"],
    )
    assert train.data.plugins["hub"].subset == "fr-en"
    assert (train.tokenizer.kind, train.tokenizer.vocabulary_size) == ("wordpiece", 32_000)
    assert (train.model.d_model, train.model.dropout, train.trainer.max_steps) == (
        1024,
        0.1,
        300_000,
    )
    assert (
        train.checkpoints.keep,
        train.checkpoints.every_steps,
        train.checkpoints.every_minutes,
    ) == (20, 600, None)
    assert (train.batching.tokens_per_update, train.optim.warmup, train.seed) == (25_000, 4000, 3)
    assert (decode.beam_size, decode.length_penalty, decode.max_extra_length) == (4, 0.6, 50)
    assert (score.metrics, score.language) == (["bleu", "tokenized"], "fr")
    assert commands["preprocess"].prepared == train.prepared
    assert commands["translate"].translator.run == [train.run]
    assert commands["translate"].output == score.hypothesis


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a_heads_32", "c_layers_2", "restricted_15", "big"])
def test_rows_of_table_3_make_the_same_change_at_both_scales(name):
    papers, small = (
        compose("train", rows("table3", f"scale={scale}")[f"table3-{name}"].training)
        for scale in ("paper", "laptop")
    )
    by = dict.fromkeys(("d_model", "d_ff", "d_k", "d_v"), 4) | dict.fromkeys(
        ("encoder_layers", "decoder_layers"), 2
    )
    sizes = {
        key: value * by[key] if key in by else value for key, value in vars(small.model).items()
    }
    if papers.model.attention_window:
        assert (papers.model.attention_window, sizes.pop("attention_window")) == (15, 4)
        sizes["attention_window"] = 15
    assert sizes == {**vars(papers.model), "norm": "pre"}
    assert small.optim.label_smoothing == papers.optim.label_smoothing
    assert papers.trainer.max_steps == (300_000 if name == "big" else 100_000)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["scale=laptop"], "must be one of table1, table2"),
        (["table2", "scale=desk"], "paper, laptop"),
        (["table2", "size=2"], "unknown key size; choose from table, scale, rows"),
        (["table2", "rows=[en-it]"], "en-de-base, en-de-big, en-fr-base, en-fr-big"),
        (["all", "rows=[en-de-base]"], "instead of all"),
        (["table2", "seed=x"], "seed=x: must be a whole number"),
    ],
)
def test_mistakes_end_in_one_line_and_exit_code_2(words, expected, capsys):
    assert main([*words, "--dry-run"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert expected in err
