"""Messages with placeholders from a wheel of Django, and how many translations hold each of them exactly once.

python benchmarks/placeholders.py django-*.whl > entries.en
python benchmarks/placeholders.py entries.jsonl        # as `nmt translate format=jsonl` wrote it
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from nmt.text.protected import Finder, Items

TEXT = re.compile(r'^(?:msgid|msgid_plural) ((?:".*"\n?)+)', re.M)
PLACEHOLDER = re.compile(r"%\(\w+\)|%[sd]|\{\w*\}|https?:|`")


def messages(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if re.search(r"/locale/en/LC_MESSAGES/.*\.po$", name):
                for found in TEXT.finditer(files.read(name).decode()):
                    text = "".join(re.findall(r'"(.*)"', found[1]))
                    yield " ".join(text.replace("\\n", " ").replace('\\"', '"').split())


def count(file: Path) -> str:
    arrived = flagged = lines = 0
    for record in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        source, best = record["source"], record["translations"][0]
        if stretches := Finder(["usual"]).stretches(source):
            lines += 1
            arrived += Items(source, stretches).arrive(best["text"])
            flagged += "protected" in best["flags"]
    return f"{arrived} of {lines} hold all exactly once ({arrived / max(lines, 1):.1%}), {flagged} are flagged"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    print(
        count(path) if path.suffix == ".jsonl" else "\n".join(sorted(set(filter(PLACEHOLDER.search, messages(path)))))
    )
