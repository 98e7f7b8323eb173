"""The share of lines that py3langid identifies as another language: wrong_language.py LANGUAGE FILE...

Of the languages of this recipe and English alone: lines of a few words say too little to choose among a hundred. How
often it is mistaken shows in the references, which the files should begin with.
"""

import sys
from pathlib import Path

import py3langid

LANGUAGES = ["en", "de", "fr", "es", "cs", "sv"]


def main() -> None:
    language, *files = sys.argv[1:]
    py3langid.set_languages(LANGUAGES)
    for name in files:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        wrong = sum(py3langid.classify(line)[0] != language for line in lines)
        print(f"{wrong / len(lines):.1%} of {len(lines):,} lines are not {language}: {name}")


main()
