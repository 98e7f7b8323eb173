"""Untrusted files: a command ends with exit code 0 or 2 and one line, in little time and memory.

NMT_FUZZ_SEED repeats a run, NMT_FUZZ_COUNT sets its length, NMT_FUZZ_ONLY=12,40 repeats single mutations, and
NMT_FUZZ_CASES=train,report runs only these cases.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import time
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random, randrange
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import TOY, WORDS
from tests.helpers.mutations import mutate
from tests.helpers.preloaded import python
from tests.plugins.parse.test_parsing import write_treebank

SECONDS = 30
PROGRAM = """
import faulthandler, resource, sys
from pathlib import Path
from nmt.cli import main
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**31,) * 2)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
faulthandler.dump_traceback_later(27)
main()
"""
SHORT = [
    "logger=csv",
    "validation.bleu_sentences=2",
    "validation.every_steps=3",
    "checkpoints.every_steps=2",
]
TRAIN = [
    *TOY,
    *(f"data.{split}=text/{split}" for split in ("train", "valid", "test")),
    *SHORT,
    "prepared=prepared",
]
PARSER = [
    *TOY[4:],
    "data=treebank",
    *(f"data.{split}=trees/{split}.mrg" for split in ("train", "valid", "test")),
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=320",
    "workers=1",
    "data.filters.deduplicate=false",
    "batching.tokens_per_update=400",
    *SHORT,
]
DATA = [
    "data.name=mine",
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=300",
    "workers=1",
    "prepared=new",
]
DATA += ["data.valid_size=1", "data.test_size=1"]
WHEEL = ["data.package=strings", "data.version=1.0", "data.path=CHANGED", "data.sha256=SHA256"]
GREEDY = ["decode=greedy", "decode.max_extra_length=4"]
CPU = [*GREEDY, "device=cpu"]
TRANSLATE = ["translate", "run=model", "input=in.txt"]
MODEL = "model/*"
PREPARED = ["prepared/*", "prepared/*/*.arrow"]
RUN = ["run/*", "run/checkpoints/*.ckpt", "run/model/*"]


@dataclass
class Case:
    """A command over files, of which one is changed."""

    weight: int
    copied: str  # what of the world lies in the command's folder
    changed: list[str]  # patterns of files and folders that may be changed
    words: list[str]
    codes: tuple[int, ...] = (0, 2)  # the exit codes that it may end with


CASES = {
    "translate": Case(5, "run/model", [MODEL], [*TRANSLATE, *CPU]),
    "wordpiece": Case(3, "run-wp/model", [MODEL], [*TRANSLATE, *CPU]),
    "beam": Case(
        2, "run/model", [MODEL], [*TRANSLATE, "run=[model,model]", "format=jsonl", "device=cpu"]
    ),
    "ctranslate2": Case(3, "run/model", [MODEL], [*TRANSLATE, "engine=ctranslate2", *GREEDY]),
    "imported": Case(2, "opus", ["opus/*"], [*TRANSLATE, "run=opus", *CPU]),
    "lines": Case(2, "run/model", ["in.*"], [*TRANSLATE, "input=CHANGED", *CPU]),
    "parse": Case(
        2, "parser/model", ["in.txt", MODEL], ["parse", "run=model", "input=in.txt", *CPU]
    ),
    "score": Case(
        2,
        "",
        ["in.*"],
        ["score", "hypothesis=CHANGED", "reference=in.txt", "metrics=[bleu,chrf,ter]"],
    ),
    "brackets": Case(
        2, "trees", ["trees/a.trees"], ["score", "hypothesis=CHANGED", "reference=trees/b.trees"]
    ),
    "judge": Case(
        2,
        "run/model",
        [MODEL, "in.*"],
        ["score", "run=model", "source=in.txt", "hypothesis=in.txt", *CPU],
    ),
    "attention": Case(
        2, "run", ["run/model", "run/model/*"], ["attention", "ka lo mi", "run=run", *CPU]
    ),
    "import_marian": Case(3, "marian", ["marian/*"], ["import", "marian", "output=new"]),
    "import_hub": Case(3, "hub", ["hub/*"], ["import", "hub", "output=new"]),
    "export": Case(1, "run/model", [MODEL], ["export", "model", "sample=in.txt"]),
    "huggingface": Case(1, "opus", ["opus/*"], ["export", "opus", "format=huggingface"]),
    "train": Case(
        3, "prepared text", PREPARED, ["train", *TRAIN, "run=new", "trainer.max_steps=1"]
    ),
    "resume": Case(
        4, "prepared text run", RUN, ["train", *TRAIN, "run=run", "trainer.max_steps=7"]
    ),
    "average": Case(5, "run", RUN, ["average", "run=run"]),
    "average_files": Case(2, "run", [RUN[1]], ["average", "run", "last=1", "output=elsewhere"]),
    "report": Case(6, "run prepared", [*RUN, *PREPARED], ["report", "run", "sentences=2", *CPU]),
    "report_running": Case(
        3, "running prepared", ["running/*"], ["report", "running", "sentences=2", *CPU]
    ),
    "cite": Case(2, "run prepared", [*RUN, *PREPARED], ["cite", "run", *CPU]),
    "verify": Case(
        3,
        "bundles run/model",
        ["bundles/*", MODEL],
        ["verify", "bundles/mine.zip", "run=model", *CPU[2:]],
        (0, 1, 2),
    ),
    "unpacked": Case(2, "unpacked", ["unpacked/*"], ["verify", "unpacked"], (0, 1, 2)),
    "preprocess": Case(
        4, "text", ["text/train.*", "text/valid.en"], ["preprocess", *TRAIN, "prepared=new"]
    ),
    "pairs": Case(
        4, "pairs", ["pairs/*"], ["preprocess", "data=files", *DATA, "data.train=CHANGED"]
    ),
    "prepared_again": Case(
        2, "text prepared", PREPARED, ["preprocess", *TRAIN, "overwrite=true", "seed=3"]
    ),
    "treebank": Case(
        2, "trees", ["trees/train.mrg", "trees/valid.mrg"], ["preprocess", *PARSER, "prepared=new"]
    ),
    "wheel": Case(2, "wheels", ["wheels/*"], ["preprocess", "data=quickstart", *DATA, *WHEEL]),
}


def run(folder: Path, words: list[str], seconds: float = SECONDS) -> int:
    """Run a command line in a folder, under limits of time and memory, and return its exit code."""
    command = [python(), "-c", PROGRAM, *words]
    here = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(folder))
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
        with subprocess.Popen(
            command, cwd=folder, env={**os.environ, **here}, **streams
        ) as process:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
    return process.returncode


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One valid file of each kind that we read."""
    folder = tmp_path_factory.mktemp("world")
    write_texts(folder)
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "marian" / "tied", folder / "marian")
    wordpiece = [
        "tokenizer.kind=wordpiece",
        "tokenizer.vocabulary_size=600",
        "prepared=prepared-wp",
    ]
    for words in (
        ["preprocess", *TRAIN],
        ["train", *TRAIN, "run=run", "trainer.max_steps=6"],
        ["preprocess", *TRAIN, *wordpiece],
        ["train", *TRAIN, *wordpiece, "run=run-wp", "trainer.max_steps=1"],
        ["preprocess", *PARSER, "prepared=prepared-trees"],
        ["train", *PARSER, "prepared=prepared-trees", "run=parser", "trainer.max_steps=1"],
        ["import", "marian", "output=opus"],
        ["export", "opus", "format=huggingface", "output=hub"],
        ["cite", "run", "output=bundles/mine.zip", "text=true", *CPU],
    ):
        assert run(folder, words, seconds=300) == 0, (words, (folder / "stderr").read_text())
    shutil.copy(folder / "run/checkpoints/step=00000006.ckpt", folder / "hub/pytorch_model.bin")
    shutil.unpack_archive(folder / "bundles/mine.zip", folder / "unpacked")
    shutil.copytree(folder / "run", folder / "running", ignore=shutil.ignore_patterns("model"))
    return folder


def write_texts(folder: Path) -> None:
    random = Random(1)
    for name in ("text", "pairs", "trees", "wheels", "bundles"):
        (folder / name).mkdir(parents=True)
    for split, size in (("train", 60), ("valid", 8), ("test", 5)):
        sentences = [" ".join(random.choices(WORDS, k=random.randint(2, 9))) for _ in range(size)]
        for language, step in (("en", 1), ("de", -1)):
            (folder / "text" / f"{split}.{language}").write_text(
                "".join(line[::step] + "\n" for line in sentences)
            )
    pairs = [(line, line[::-1]) for line in (folder / "text/train.en").read_text().splitlines()]
    rows = [{"source": source, "target": target} for source, target in pairs]
    (folder / "pairs/pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    compressions = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    compressions["zst"] = lambda content: pa.compress(content, "zstd", asbytes=True)
    for path, texts in (
        (folder / "in.txt", sentences),
        (folder / "pairs/pairs.tsv", map("\t".join, pairs)),
    ):
        path.write_text("".join(f"{text}\n" for text in texts))
        for suffix, compress in compressions.items():
            path.with_name(f"{path.name}.{suffix}").write_bytes(compress(path.read_bytes()))
    write_treebank(folder / "trees")
    for name in ("a.trees", "b.trees"):
        (folder / "trees" / name).write_text(
            "(S (NP (DT the) (NN cat)) (. .))\n(S (NP (DT the) (NN dog)))\n"
        )
    with zipfile.ZipFile(folder / "wheels/strings.whl", "w") as wheel:
        for number in range(8):
            for language, words in (("en", "Turn on"), ("de", "Einschalten")):
                tree = {"title": f"{words} {number}", "deep": {"er": f"{words} now {number}"}}
                wheel.writestr(
                    f"homeassistant/components/c{number}/translations/{language}.json",
                    json.dumps(tree),
                )


def snapshot(folder: Path) -> dict[str, Any]:
    """Every path in a folder, with its status and content."""
    paths = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    return {
        str(path.relative_to(folder)): (status.st_mode, status.st_ino, status.st_mtime_ns)
        + ((path.read_bytes(),) if path.is_file() and not path.is_symlink() else ())
        for path, status in paths.items()
    }


def prepare(world: Path, folder: Path, case: Case, random: Random) -> tuple[list[str], str]:
    """Fill a command's folder and mutate one file; returns the command and a description of the mutation."""
    outside, here = folder / "outside", folder / "here"
    (outside / "checkpoints" / "step=00000001.tmp").mkdir(parents=True)
    (outside / "secret.txt").write_text("a line\n")
    here.mkdir()
    for name in case.copied.split():
        shutil.copytree(world / name, here / Path(name).name)
    for path in world.glob("in.*"):
        shutil.copy(path, here)
    changed = random.choice(
        sorted({path for pattern in case.changed for path in here.glob(pattern)})
    )
    # If a user names a pipe, the command waits for it.
    named = any("CHANGED" in word or word.endswith(f"={changed.name}") for word in case.words)
    done, name = mutate(changed, random, named), str(changed.relative_to(here))
    digest = (
        hashlib.sha256(changed.read_bytes()).hexdigest()
        if changed.is_file() and done != "link"
        else "0" * 64
    )
    name = f"'{name}'" if "=" in name else name
    return [
        word.replace("CHANGED", name).replace("SHA256", digest) for word in case.words
    ], f"{done} of {name}"


def complaint(code: int, here: Path, before: dict[str, Any], codes: tuple[int, ...]) -> str | None:
    """The problem with the end of a command, if any."""
    said = (here / "stderr").read_text(errors="replace")
    last = (said.splitlines() or [""])[-1]
    problems = {
        f"exit code {code}": code not in codes,  # -9 after the time limit
        "a traceback": "Traceback" in said,
        "no line of its own": code == 2 and not last.startswith("nmt: "),
        "not in our words": "weights_only" in said or len(last) > 2100,
        "something outside has changed": snapshot(here.parent / "outside") != before,
    }
    return next((f"{problem}: {said[-900:]}" for problem, is_so in problems.items() if is_so), None)


@pytest.mark.slow
def test_untrusted_files_end_in_one_line(world: Path, tmp_path: Path, capsys) -> None:
    seed, count = (
        int(os.environ.get("NMT_FUZZ_SEED", randrange(10**6))),
        int(os.environ.get("NMT_FUZZ_COUNT", 1000)),
    )
    only = [int(number) for number in os.environ.get("NMT_FUZZ_ONLY", "").split(",") if number]
    names = os.environ.get("NMT_FUZZ_CASES", ",".join(CASES)).split(",")
    whole, start = snapshot(world), time.monotonic()
    failures, codes = [], Counter[int]()
    for number in only or range(count):
        random, folder = Random(f"{seed} {number}"), tmp_path / str(number)
        name = random.choices(names, [CASES[name].weight for name in names])[0]
        words, done = prepare(world, folder, CASES[name], random)
        before = snapshot(folder / "outside")
        code = run(folder / "here", words)
        codes[code] += 1
        if problem := complaint(code, folder / "here", before, CASES[name].codes):
            failures.append(f"{number} {name}, {done}: {problem}")
        elif not only:
            shutil.rmtree(folder)
    with capsys.disabled():
        print(
            f"\n{codes.total()} mutations, seed {seed}, {time.monotonic() - start:.0f} s, exit codes {dict(codes)}"
        )
    assert snapshot(world) == whole
    assert not failures, f"seed {seed}\n" + "\n\n".join(failures)
