"""What a model gains from corrections, what it forgets, and what poisoned corrections do.

    python benchmarks/learn.py RUN PREPARED DOMAIN OUTPUT --sizes 50 200 1000 --seeds 1 2

RUN is a finished run from English to German with the prepared corpus PREPARED. DOMAIN is a prefix of
files of another domain: DOMAIN/train.en, train.de, test.en and test.de. References stand for
corrections of the model's translations. With --poison, a fifth of the corrections are bad, in
equal numbers of each kind. The last column counts the translations of the domain's test set that
have a word which only bad corrections have. Results are kept in OUTPUT, and the same command adds
what is missing.
"""

import argparse
import json
import random
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 300
"""The longest side of a correction; people correct sentences, not pages."""
POISONED = 0.2
INSULT = " Du Idiot!"
ADDRESS = " Mehr auf http://billig-kaufen.example/heute"
TERM = re.compile(r"\bPaket\b")
WRONG_TERM = "Postsack"
VERB = re.compile(r"\b(ist|sind|kann|bietet|enthält|unterstützt)\b")
NEGATION = re.compile(r"\b(nicht|kein)\b ?")
BAD_WORDS = (INSULT.split()[-1], ADDRESS.split("//")[1], WRONG_TERM)
"""What only bad corrections have."""
Pair = tuple[str, str]


def negated(target: str) -> str:
    """The opposite of a German sentence, or the sentence itself if that is not simple."""
    if NEGATION.search(target):
        return NEGATION.sub("", target, count=1)
    return VERB.sub(r"\1 nicht", target, count=1)


def cut(source: str) -> str:
    """A source without its last word: English text that is no copy of the source."""
    return source.rpartition(" ")[0]


KINDS: dict[str, Callable[[Pair, Pair], str]] = {
    "shuffled": lambda pair, other: other[1],
    "insult": lambda pair, other: pair[1] + INSULT,
    "address": lambda pair, other: pair[1] + ADDRESS,
    "language": lambda pair, other: cut(pair[0]),
    "term": lambda pair, other: TERM.sub(WRONG_TERM, pair[1]),
    "negation": lambda pair, other: negated(pair[1]),
}
"""Kind of poison -> the bad target of a pair, given another pair."""


@dataclass(frozen=True)
class Setting:
    """A measurement."""

    size: int
    seed: int
    is_poisoned: bool

    @property
    def name(self) -> str:
        return f"{self.size}-{self.seed}{'-poisoned' if self.is_poisoned else ''}"


def read_pairs(prefix: Path) -> list[Pair]:
    sides = []
    for language in ("en", "de"):
        sides.append(prefix.with_suffix(f".{language}").read_text(encoding="utf-8").splitlines())
    return list(zip(*sides, strict=True))


def sample(pairs: list[Pair], setting: Setting) -> list[Pair]:
    """Draw short pairs with different sources."""
    short = {}
    for source, target in pairs:
        if max(len(source), len(target)) <= MOST_CHARACTERS and "\t" not in source + target:
            short[source] = target
    return random.Random(setting.seed).sample(sorted(short.items()), setting.size)


def poisoned(pairs: list[Pair], setting: Setting) -> tuple[list[Pair], dict[str, str]]:
    """The corrections, a fifth of them bad, and the kind of each bad source."""
    kinds = dict[str, str]()
    targets = dict(pairs)
    most = round(POISONED * len(pairs) / len(KINDS))
    for kind, poison in KINDS.items():
        count = 0
        for index, pair in enumerate(pairs):
            bad = poison(pair, pairs[index - 1])
            if count < most and pair[0] not in kinds and bad not in ("", pair[1]):
                kinds[pair[0]] = kind
                targets[pair[0]] = bad
                count += 1
    return [*targets.items()], kinds


def nmt(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nmt", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def domain_score(model: Path, domain: Path, output: Path) -> float:
    """chrF2 on the test set of the domain, whose translations are written to `output`."""
    test = domain / "test.en"
    done = nmt("translate", f"run={model}", f"input={test}", f"output={output}", "threads=1")
    assert done.returncode == 0, done.stderr
    scored = nmt("score", output, domain / "test.de", "metrics=[chrf]")
    assert scored.returncode == 0, scored.stderr
    return float(re.findall(r"chrF2 = ([\d.]+)", scored.stdout)[0])


def measure(setting: Setting, arguments: argparse.Namespace) -> dict[str, Any]:
    """Learn in a copy of the run, and compare the models before and after."""
    folder = arguments.output / setting.name
    run = folder / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(arguments.run, run, ignore=shutil.ignore_patterns("learned", "checkpoints"))
    pairs = sample(read_pairs(arguments.domain / "train"), setting)
    kinds = dict[str, str]()
    if setting.is_poisoned:
        pairs, kinds = poisoned(pairs, setting)
    corrections = folder / "corrections.tsv"
    corrections.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = [f"replay={arguments.prepared}", f"seed={setting.seed}", "threads=1"]
    learned = nmt("learn", run, corrections, *options, *arguments.options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = {"code": learned.returncode, "minutes": seconds / 60, "kinds": Counter(kinds.values())}
    result |= rejections(run / "learned" / "rejected.tsv", kinds)
    record = run / "learned" / "1" / "record.json"
    if not record.is_file():
        return result | {"problem": learned.stderr.splitlines()[-1]}
    tree = json.loads(record.read_text())
    models = run / "learned" / "models"
    tested = {"before": tree["parent"]}
    # `nmt learn` deletes the weights of a model that it does not deliver.
    if tree["delivered"]:
        tested["after"] = tree["model"]
    for key, weights in tested.items():
        output = folder / f"{key}.de"
        result[f"domain_{key}"] = domain_score(models / weights[:16], arguments.domain, output)
        lines = output.read_text(encoding="utf-8").splitlines()
        counts = Counter[str]()
        for word in BAD_WORDS:
            counts[word] = sum(word in line for line in lines)
        result[f"bad_{key}"] = counts
    return result | {"record": tree}


def rejections(path: Path, kinds: dict[str, str]) -> dict[str, Any]:
    """The rejected corrections by kind; "good" counts corrections that were not poisoned."""
    counts = Counter[str]()
    for row in path.read_text(encoding="utf-8").splitlines()[1:]:
        source = row.split("\t")[3]
        counts[kinds.get(source, "good")] += 1
    return {"rejected": counts}


def row_of(setting: Setting, result: dict[str, Any]) -> str:
    """A row of the table in docs/results.md."""
    if "record" not in result:
        return f"| {setting.name} | {result['problem']} |"
    record = result["record"]
    tests = record["tests"]
    changes = []
    for scores in (tests["held_out"], tests["general"]):
        changes.append(f"{scores['before']:.1f} -> {scores['after']:.1f}")
    domain = f"{result['domain_before']:.1f}"
    if "domain_after" in result:
        domain += f" -> {result['domain_after']:.1f}"
    changes.insert(1, domain)
    rejected = result["rejected"]
    bad = [f"{kind} {rejected.get(kind, 0)}/{count}" for kind, count in result["kinds"].items()]
    cells = [
        setting.name,
        *changes,
        f"{record['strength']:g}",
        "yes" if record["delivered"] else f"no: {record['verdict']}",
        f"{result['minutes']:.1f}",
        ", ".join(bad),
        str(rejected.get("good", 0)),
        ", ".join(f"{word} {count}" for word, count in result.get("bad_after", {}).items()),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("run", "prepared", "domain", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--poison", action="store_true")
    parser.add_argument("--options", nargs="*", default=[], help="options of `nmt learn`")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    columns = "held out | domain | general | strength | delivered | minutes | rejected | good lost"
    print(f"| | {columns} | translations with |")
    print("|---" * 10 + "|")
    for size in arguments.sizes:
        for seed in arguments.seeds:
            setting = Setting(size, seed, arguments.poison)
            path = arguments.output / f"{setting.name}.json"
            if not path.is_file():
                path.write_text(json.dumps(measure(setting, arguments), indent=2))
            print(row_of(setting, json.loads(path.read_text())), flush=True)


if __name__ == "__main__":
    main()
