"""Reproducing a table: rows that have been run are not run again."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import reproduce
import table2
from plan import Row

import nmt as package
from nmt.evaluation import score

WORDS = ["table2", "scale=laptop", "work=work", "output=out"]
RESULTS = Path("out/table2/results/laptop")


def made_of(monkeypatch, *commands):
    """Let Table 2 have one row, en-de-base, of these commands."""
    monkeypatch.setattr(
        table2, "rows", lambda options: [Row("en-de-base", [["nmt", *words] for words in commands])]
    )


@pytest.mark.slow
def test_rows_run_once_and_again_if_their_commands_change(here, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))
    scores = ["score", "hypothesis=a", "reference=a", "format=json"]
    (here / "a").write_text("A line.\n")
    figures = {"scores": [], "devices": "cpu", "figures": {}}
    monkeypatch.setattr(
        reproduce, "findings", lambda row, printed: {**figures, "scores": json.loads(printed)}
    )
    made_of(monkeypatch, ["--version"], scores)
    assert reproduce.main(WORDS) == 0
    out, err = capfd.readouterr()
    assert out.split() == [str(RESULTS / "table2.md"), str(RESULTS / "table2.html")]
    assert err.startswith(
        "table2 en-de-base, 1 of 2: nmt --version\ntable2 en-de-base, 2 of 2: nmt score"
    )
    result = json.loads((RESULTS / "en-de-base.json").read_text())
    assert result["commands"] == ["nmt --version", "nmt score hypothesis=a reference=a format=json"]
    assert list(result["seconds"]) == ["--version", "score"]
    assert result["scores"] == [
        asdict(item) for item in score(["A line."], ["A line."], ["bleu", "chrf", "ter"])
    ]
    assert "| Transformer (base) | 27.3 |" in (RESULTS / "table2.md").read_text()

    assert reproduce.main(WORDS) == 0
    assert "already measured; remove" in capfd.readouterr().err
    made_of(monkeypatch, ["--version"], [*scores, "language=en"])
    assert reproduce.main(WORDS) == 0
    assert "2 of 2" in capfd.readouterr().err
