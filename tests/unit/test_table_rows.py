"""The rows of Tables 1, 3 and 4: each is one of the experiments, the same at every scale but for its sizes."""

import json

import pytest
import torch
from rich.console import Console

from nmt.compose import command_groups, compose
from nmt.errors import NMTError
from nmt.reproduce import table1, table3, table4
from nmt.reproduce.complexity.measuring import GRIDS, Grid, measure
from nmt.reproduce.paper import COMPARISONS, VARIATIONS
from nmt.reproduce.render import markdown, page
from nmt.reproduce.reproduce import reproduce
from nmt.reproduce.results import Result
from nmt.reproduce.scales import LAPTOP, PAPER

PRINTED4 = """
Vinyals & Kaiser 2014 | WSJ only | 88.3
Petrov et al. 2006 | WSJ only | 90.4
Zhu et al. 2013 | WSJ only | 90.4
Dyer et al. 2016 | WSJ only | 91.7
Transformer (4 layers) | WSJ only | 91.3
Zhu et al. 2013 | semi-supervised | 91.3
Huang & Harper 2009 | semi-supervised | 91.3
McClosky et al. 2006 | semi-supervised | 92.1
Vinyals & Kaiser 2014 | semi-supervised | 92.1
Transformer (4 layers) | semi-supervised | 92.7
Luong et al. 2015 | multi-task | 93.0
Dyer et al. 2016 | generative | 93.3
"""
SMALL = Grid((16, 32, 64), (64, 128, 256), (3, 5, 7), (4, 8, 16), at_n=16, at_d=64, at_k=3, at_r=4, batch=1, rounds=1)


def row_config(scale, name):
    (variation,) = (v for v in (*VARIATIONS, *COMPARISONS) if v.name == name)
    experiment = table3.experiment(compose("reproduce", ["table3"]), scale, variation)
    return compose("train", list(experiment.training_words()))


def test_every_experiment_of_table_3_is_a_row():
    options = command_groups("train")["experiment"][1]
    rows = {f"table3/{variation.name}" for variation in (*VARIATIONS, *COMPARISONS)}
    assert rows == {option for option in options if option.startswith("table3/")}


@pytest.mark.parametrize(
    "name", ["a_heads_32", "b_d_k_16", "c_layers_2", "d_label_smoothing_0.2", "restricted_15", "big"]
)
def test_a_row_is_the_same_change_at_both_scales(name):
    papers, small = row_config(PAPER, name), row_config(LAPTOP, name)
    by = dict.fromkeys(("d_model", "d_ff", "d_k", "d_v"), 4) | dict.fromkeys(("encoder_layers", "decoder_layers"), 2)
    sizes = {key: value * by[key] if key in by else value for key, value in vars(small.model).items()}
    if papers.model.attention_window:
        assert sizes.pop("attention_window") == 4
        sizes["attention_window"] = 15
    assert sizes == {**vars(papers.model), "norm": "pre"}
    assert small.optim.label_smoothing == papers.optim.label_smoothing
    assert small.checkpoints.keep == papers.checkpoints.keep == 1
    assert papers.trainer["max_steps"] == (300_000 if name == "big" else 100_000)


def test_table_4_has_the_papers_numbers():
    text = markdown(table4.document(LAPTOP, {}))
    rows = [line.strip("| ").replace(" (published)", "") for line in text.splitlines() if line.startswith("| ")]
    found = [row.rpartition(" | ") for row in rows if row.split(" | ")[0].split()[-1] in ("2014", "layers)", *YEARS)]
    assert [row for row, _, _ in found] == PRINTED4.strip().splitlines()
    assert [ours for row, _, ours in found if row.startswith("Transformer")] == ["not run", "not run"]


def test_table_4_wants_a_treebank_that_holds_every_split(tmp_path):
    def lacks(scale, *words):
        return table4.lacks(compose("reproduce", ["table4", *words]), scale)

    own = f"treebank={tmp_path}"
    for scale in (PAPER, LAPTOP):
        assert "treebank=FOLDER" in lacks(scale)
        assert "no such file or folder" in lacks(scale, "treebank=nowhere")
        assert f"{own}: {tmp_path}" in lacks(scale, own)
    for split in ("train", "valid"):
        assert split in lacks(LAPTOP, own)
        (tmp_path / split).mkdir()
        (tmp_path / split / "a.mrg").touch()
    assert lacks(LAPTOP, own) == ""
    for section in range(24):
        (tmp_path / f"{section:02}").mkdir()
        (tmp_path / f"{section:02}" / "a.mrg").touch()
    assert lacks(PAPER, own) == ""


YEARS = ("2006", "2009", "2013", "2015", "2016")


def test_a_parsers_f1_stands_in_its_row_alone():
    scores = [{"metric": f"brackets{part}", "name": part, "value": 61.5, "signature": "s"} for part in ("", "_recall")]
    result = Result("table4", "parser", "laptop", 1, [], [], {}, scores=scores)
    text = markdown(table4.document(LAPTOP, {"parser": result}))
    assert "| Transformer (4 layers) | WSJ only | 91.3 | 61.50 |" in text
    assert "| Transformer (4 layers) | semi-supervised | 92.7 | not run |" in text
    assert "| not run | 61.50 | not run |" in text


def test_table_1_shows_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(GRIDS, "small", SMALL)
    path = tmp_path / "layers.json"
    measure(SMALL, torch.device("cpu"), path)
    found = json.loads(json.dumps(table1.findings(path)))
    document = table1.document(LAPTOP, {"layers": Result("table1", "layers", "laptop", 1, [], [], {}, **found)})
    assert "not run" not in markdown(document)
    assert "<svg" in page(document)
    empty = markdown(table1.document(LAPTOP, {}))
    for printed in ("O(n² · d)", "O(n · d²)", "O(k · n · d²)", "O(r · n · d)", "O(log_k n)", "O(n/r)", "not run"):
        assert f"| {printed} |" in empty


def test_table_4_without_a_treebank_says_what_is_needed():
    with pytest.raises(NMTError, match="treebank=FOLDER"):
        reproduce(compose("reproduce", ["table4", "scale=laptop"]), LAPTOP, Console(quiet=True))
