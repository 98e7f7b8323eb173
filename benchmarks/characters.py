"""Measure how many signs survive translation that NFKC would change, such as 2½, m², № and ™.

    OMP_NUM_THREADS=1 python benchmarks/characters.py MODEL SOURCE REFERENCE

The script appends each sign, in parentheses, to the same 100 lines of SOURCE and REFERENCE. It prints for each sign the
share of translations that have exactly this sign, then the share of all lines, and chrF with and without the signs.
"""

import sys
from pathlib import Path

import nmt
from nmt.evaluation import score

LINES = 100
SIGNS = [
    *("2½ hours", "¾", "25²", "10⁶", "m²", "CO₂", "H₂O", "x³", "№ 5", "Brand™"),
    *("ℹ", "Ⓜ", "①", "Ⅳ", "5 µm", "6″", "㎡", "℃", "ª", "⅞"),
]


def with_sign(line: str, sign: str) -> str:
    body = line.rstrip(".")
    return f"{body} ({sign}){line[len(body) :]}"


def chosen(path: str) -> list[str]:
    """Lines spread evenly over a file."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return lines[:: len(lines) // LINES][:LINES]


def main(model: str, source: str, reference: str) -> None:
    sources = chosen(source)
    references = chosen(reference)
    translator = nmt.load(model)
    plain = translator.translate(sources)
    translations = list[str]()
    expected = list[str]()
    kept = 0
    for sign in SIGNS:
        texts = translator.translate([with_sign(line, sign) for line in sources])
        # A unit belongs to the item; words beside it are translated.
        item = sign.removesuffix(" hours").removeprefix("Brand")
        intact = sum(item in text for text in texts)
        kept += intact
        print(f"{sign:10} {intact / LINES:6.1%}")
        translations += texts
        expected += [with_sign(line, sign) for line in references]
    print(f"all {len(translations):,} lines: {kept / len(translations):.1%}")
    for name, lines, right in (("without", plain, references), ("with", translations, expected)):
        print(f"chrF {name} signs:", score(lines, right, ["chrf"])[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
