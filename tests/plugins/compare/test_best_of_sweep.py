"""A star in the table of a sweep is a paired test of the translations whose BLEU stands beside it."""

from pathlib import Path

import pytest
import sacrebleu

from nmt.plugins.compare.best_of_sweep import differ_from_best
from nmt.training.run_folder import VALIDATION, write_validation

REFERENCES = [f"das Haus Nummer {n} ist alt und rot und {n * n} Meter hoch ." for n in range(60)]


def row(folder: Path, name: str, texts: list[str], references: list[str] = REFERENCES) -> dict[str, str]:
    """A row of the table, whose run kept its translations."""
    (folder / name).mkdir()
    write_validation(folder / name, (texts, references))
    return {"run": str(folder / name), "valid_bleu": f"{sacrebleu.corpus_bleu(texts, [references]).score:.4f}"}


def spoilt(every: int, first: int = 0) -> list[str]:
    return [line.replace("alt", "neu") if n % every == first else line for n, line in enumerate(REFERENCES)]


def test_a_star_is_a_paired_test_and_nothing_else_is_one(tmp_path):
    best = row(tmp_path, "best", spoilt(10))
    others = [
        row(tmp_path, "worse", spoilt(2)),
        row(tmp_path, "alike", spoilt(10, 5)),
        row(tmp_path, "same", spoilt(10)),
    ]
    assert differ_from_best(best, others) == ["*", "no", "no"]
    few = [row(tmp_path, f"{name} few", spoilt(every)[:49], REFERENCES[:49]) for name, every in (("a", 50), ("b", 2))]
    assert differ_from_best(few[0], few[1:]) == [""]


@pytest.mark.parametrize("problem", ["missing", "of another update", "of other lines", "no BLEU"])
def test_without_its_translations_a_point_has_no_star(tmp_path, problem):
    best, worse = row(tmp_path, "best", spoilt(10)), row(tmp_path, "worse", spoilt(2))
    if problem == "missing":
        (tmp_path / "worse" / VALIDATION).unlink()
    elif problem == "of another update":
        worse["valid_bleu"] = f"{float(worse['valid_bleu']) - 0.02:.4f}"
    elif problem == "of other lines":
        worse = row(tmp_path, "other", spoilt(2), [f"{line} ja" for line in REFERENCES])
    else:
        worse["valid_bleu"] = ""
    assert differ_from_best(best, [worse]) == [""]
    assert differ_from_best(worse, [best]) == [""]
