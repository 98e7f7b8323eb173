"""The pages of the paper's tables, with the paper's numbers beside ours and their commands."""

import re
from pathlib import Path

import pytest
from pages import NONE, render
from plan import SCALES, TABLES
from reproduce import MODULES
from results import read_results

RECIPES = Path(__file__).parents[2] / "recipes"
# BLEU en-de, en-fr, FLOPs en-de, en-fr; read off the paper.
PRINTED2 = """
ByteNet (published) | 23.75 | – | – | –
Deep-Att + PosUnk (published) | – | 39.2 | – | 1.0e20
GNMT + RL (published) | 24.6 | 39.92 | 2.3e19 | 1.4e20
ConvS2S (published) | 25.16 | 40.46 | 9.6e18 | 1.5e20
MoE (published) | 26.03 | 40.56 | 2.0e19 | 1.2e20
Deep-Att + PosUnk ensemble (published) | – | 40.4 | – | 8.0e20
GNMT + RL ensemble (published) | 26.30 | 41.16 | 1.8e20 | 1.1e21
ConvS2S ensemble (published) | 26.36 | 41.29 | 7.7e19 | 1.2e21
Transformer (base) | 27.3 | 38.1 | 3.3e18 | 3.3e18
Transformer (big) | 28.4 | 41.8 | 2.3e19 | 2.3e19
"""
# Row, perplexity, BLEU, millions of parameters.
PRINTED3 = """
base 4.92 25.8 65 A 5.29 24.9 – A 5.00 25.5 – A 4.91 25.8 – A 5.01 25.4 – B 5.16 25.1 58 B 5.01 25.4 60
C 6.11 23.7 36 C 5.19 25.3 50 C 4.88 25.5 80 C 5.75 24.5 28 C 4.66 26.0 168 C 5.12 25.4 53 C 4.75 26.2 90
D 5.77 24.6 – D 4.95 25.5 – D 4.67 25.3 – D 5.47 25.7 – E 4.92 25.7 – big 4.33 26.4 213
"""
PRINTED4 = {
    f"Transformer (4 layers) | {row} | not run"
    for row in ("WSJ only | 91.3", "semi-supervised | 92.7")
}
MACHINE = {"processor": "Abacus", "cores": 2, "memory_gib": 24.0}
ORIGIN = {"commit": "abc123", "machine": MACHINE, "packages": {"torch": "2.13"}}


def result(row, table="table2", **figures):
    scores = [
        {"metric": "bleu", "name": "BLEU", "value": 11.239, "signature": "nrefs:1|tok:13a"},
        {
            "metric": "split",
            "name": "BLEU (split)",
            "value": 12.346,
            "signature": "nrefs:1|split:hyphen",
        },
    ]
    about = {
        "table": table,
        "row": row,
        "scale": "laptop",
        "seed": 7,
        "commands": ["nmt train <&>"],
    }
    seconds = {"preprocess": 12.0, "train": 300.0}
    measured = {"devices": "1 x cpu", "scores": scores, "figures": figures}
    return {**about, "origins": [ORIGIN], "seconds": seconds, **measured}


def markdown(table, results, scale="laptop"):
    return render(MODULES[table].page(SCALES[scale], results), "md")


def grid(text, title):
    """The rows of a Markdown page's table under a heading."""
    lines = text.split(f"## {title}\n\n")[1].split("\n\n")[0].splitlines()
    head, _, *rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    ]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_pages_are_up_to_date_with_the_results(table):
    folder = RECIPES / table / "results" / "laptop"
    page = MODULES[table].page(SCALES["laptop"], read_results(folder, 1))
    assert render(page, "md") == (folder / f"{table}.md").read_text()
    # Style sheets and drawings may change without the numbers.
    old, new = ((folder / f"{table}.html").read_text(), render(page, "html"))
    bodies = [
        re.sub("<svg.*</svg>", "", text.partition("</head>")[2], flags=re.S) for text in (old, new)
    ]
    assert bodies[0] == bodies[1]


def test_tables_have_the_papers_numbers_and_name_rows_that_were_not_run():
    text = markdown("table2", {})
    bleus, costs = grid(text, "BLEU"), grid(text, "Training cost in FLOPs")
    columns = [
        (bleus, "system"),
        *((table, f"{pair}, paper") for table in (bleus, costs) for pair in ("en-de", "en-fr")),
    ]
    rows = zip(*([row[column] for row in table] for table, column in columns), strict=True)
    assert [" | ".join(row) for row in rows] == PRINTED2.strip().splitlines()
    for row in (*bleus, *costs):
        ours = {cell for column, cell in row.items() if "ours" in column}
        assert ours == ({NONE} if "published" in row["system"] else {"not run"})

    text = markdown("table3", {}, "paper")
    columns = ("row", "PPL, paper", "BLEU, paper", "parameters (M), paper")
    rows = grid(text, "Perplexity, BLEU, parameters")
    assert [row[column] for row in rows for column in columns] == PRINTED3.split()
    for title in (
        "Perplexity, BLEU, parameters",
        "Differences from base",
        "Other attention functions",
    ):
        assert {
            cell for row in grid(text, title) for column, cell in row.items() if "ours" in column
        } == {"not run"}

    text = markdown("table4", {})
    assert {" | ".join(row.values()) for row in grid(text, "Labeled bracketing F1")} > PRINTED4
    assert grid(text, "Our parser") == [
        dict.fromkeys(("precision", "recall", "complete match"), "not run")
    ]


def test_our_scores_stand_in_the_rows_that_were_run():
    text = markdown(
        "table2", {"en-de-big": result("en-de-big", training_cost=1.26e15, training_flops=9.94e14)}
    )
    base, big = grid(text, "BLEU")[-2:]
    assert (big["en-de, ours, paper's protocol"], big["en-de, ours, sacreBLEU"]) == (
        "12.35",
        "11.24",
    )
    assert base["en-de, ours, sacreBLEU"] == big["en-fr, ours, sacreBLEU"] == "not run"
    cost = grid(text, "Training cost in FLOPs")[-1]
    assert (cost["en-de, ours, paper's formula"], cost["en-de, ours, counted"]) == (
        "1.3e15",
        "9.9e14",
    )
    for word in (
        "nrefs:1|tok:13a",
        "abc123",
        "seed: 7",
        "Abacus, 2 cores, 24 GiB",
        "train <&>",
        "train: 5 min",
    ):
        assert word in text


def test_differences_are_relative_to_our_own_base_model():
    base = result(
        "table3-base", "table3", perplexity=30.0, parameters=2_000_000, training_seconds=60.0
    )
    wide = result(
        "table3-c_d_ff_4096", "table3", perplexity=27.5, parameters=3_500_000, training_seconds=60.0
    )
    wide["scores"][1]["value"] = 10.0
    text = markdown("table3", {"table3-base": base, "table3-c_d_ff_4096": wide})
    rows = {row["changed from base"]: row for row in grid(text, "Differences from base")}
    row = rows["d_ff 4096"]
    assert [row[f"{name}, paper"] for name in ("PPL", "BLEU", "parameters (M)")] == [
        "−0.17",
        "+0.4",
        "+25",
    ]
    assert [row[f"{name}, ours"] for name in ("PPL", "BLEU", "parameters (M)")] == [
        "−2.50",
        "−2.35",
        "+1.50",
    ]
    assert rows["N 2"]["PPL, ours"] == "not run"
    alone = markdown("table3", {"table3-c_d_ff_4096": wide})
    assert (
        grid(alone, "Differences from base")[-7]["PPL, ours"] == "not run"
    )  # d_ff 4096, without a base of ours
