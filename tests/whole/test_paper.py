"""The code that docs/how/paper.md names for a part of the paper exists and cites that part."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

TABLE = (Path(__file__).parents[2] / "docs/how/paper.md").read_text().split("\n## ")[0]
EVERYTHING = [
    "section 3",
    "section 3.1",
    "section 3.2.1",
    "section 3.2.2",
    "section 3.2.3",
    "section 3.3",
    "section 3.4",
    "section 3.5",
    "section 4",
    "section 5.1",
    "section 5.2",
    "section 5.3",
    "section 5.4",
    "section 6.1",
    "section 6.2",
    "section 6.3",
    "equation 1",
    "equation 2",
    "equation 3",
    "figure 1",
    "figure 2",
    "figure 3",
    "figure 4",
    "figure 5",
    "table 1",
    "table 2",
    "table 3",
    "table 4",
]


def places(text: str) -> set[str]:
    """section 3.1, equation 2: the places that a text names; "figures 3, 4 and 5" and "figures 3 to 5" are three."""
    found = set()
    number = r"\d(?:\.\d)*"
    for kind, numbers in re.findall(
        rf"(section|equation|figure|table)s? ({number}(?:(?:, | and | to ){number})*)", text, re.I
    ):
        given = re.findall(number, numbers)
        if " to " in numbers:
            given = [str(n) for n in range(int(given[0]), int(given[-1]) + 1)]
        found |= {f"{kind.lower()} {n}" for n in given}
    return found


def entries():
    """A row's places, a file and a symbol in it, for every symbol."""
    for row in re.findall(r"^\| (.*) \| .* \| (.*) \|$", TABLE, flags=re.M):
        for symbol, path in re.findall(r"\[`([\w.]+)`\]\[(nmt[\w.]+)\]", row[1]):
            yield pytest.param(
                places(row[0]), path.removesuffix(f".{symbol}"), symbol, id=f"{row[0]}-{symbol}"
            )
        for module, symbol in re.findall(r"`recipes/paper/(\w+)\.py`: `(\w+)`", row[1]):
            yield pytest.param(places(row[0]), module, symbol, id=f"{row[0]}-{symbol}")


@pytest.mark.parametrize(("expected", "module", "symbol"), list(entries()))
def test_each_symbol_exists_and_cites_its_section(expected, module, symbol):
    assert expected
    assert expected <= places(
        reduce(getattr, symbol.split("."), importlib.import_module(module)).__doc__ or ""
    )


def test_the_page_covers_the_whole_paper():
    named = set().union(*(entry.values[0] for entry in entries()))
    assert [place for place in EVERYTHING if place not in named] == []
