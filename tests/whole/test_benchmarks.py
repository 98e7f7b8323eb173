"""Every benchmark and recipe runs, at a tiny size."""

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import write_toy_text

ROOT = Path(__file__).parents[2]
BENCHMARKS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("benchmarks/*.sh")])
RECIPES = sorted(ROOT.glob("recipes/*/*.sh"))
# Benchmark -> arguments. MODEL is a run, PREPARED its corpus, F/... a file that `inputs` writes.
ARGUMENTS = {
    "alignment.py": ["MODEL", "PREPARED", "50"],
    "busy.py": [
        "PREPARED", "model=tiny", "optim.warmup=10",
        "--neighbors", "1", "--rounds", "1", "--settings", "default", "OMP_NUM_THREADS=1",
    ],
    "characters.py": ["MODEL", "F/long.en", "F/long.de"],
    "corpus_alarm.py": ["F/alarm", "--rates", "0.1"],
    "document_speed.py": ["5", "1"],
    "documents.py": ["F/page.html", "F/seite.html"],
    "exactness.py": ["small", "1", "1"],
    "filtering.py": ["MODEL", "F/test.en", "F/test.de", "20"],
    "formats.py": ["F/formats"],
    "growth.py": ["MODEL", "F/test.en", "planning", "--sizes", "3", "--results", "a.json", "--figure", "a.svg"],
    "inline_code.py": ["pairs", "F/test.en", "F/test.de"],
    "int8.py": ["MODEL", "F/test.en", "F/test.de", "20"],
    "join.py": ["F/long.en", "F/long.de", "F/test.en", "F/test.de", "MODEL", "MODEL"],
    "latency.py": ["MODEL", "F/test.en", "3", "1"],
    "libretranslate.py": ["F/clone", "MODEL"],
    "markup_placement.py": ["MODEL", "F/test.en", "F/test.de", "F/words.tsv"],
    "memory.py": ["loss", "40", "500", "16"],
    "memory_matches.py": ["F/test.en", "F/test.de", "F/test.en", "--entries", "300", "--brute", "3"],
    "peers_transformers.py": ["F/ids", "16", "32", "0.1", "40", "0.001", "2", "200", "4", "2"],
    "many_files.py": ["corpus", "100000", "3"],
    "placeholders.py": ["F/entries.jsonl", "F/entries.de"],
    "planning.py": ["20000", "2000"],
    "preprocess.py": ["2000"],
    "preprocess_scaling.py": ["check", "2000"],
    "race.py": ["F", "--minutes", "0.5", "--only", "nmt-laptop", "--cores", "0", "--cache", "cache",
                "--pairs", "train", "valid", "test", "--vocabulary", "300"],
    "quality.py": ["MODEL", "F/long.en", "F/long.de", "--valid", "F/long.en", "F/long.de"],
    "record.sh": ["out", "F"],
    "schedules.py": ["2"],
    "scripts.py": ["F/catalogs", "40"],
    "serve.py": ["MODEL", "F/test.en", "5", "1"],
    "startup.py": [],
    "terms.py": ["MODEL", "F/test.en", "F/test.de", "oracle"],
    "train.py": ["small", "1"],
    "translate.py": ["MODEL", "F/test.en", "5", "1"],
}  # fmt: skip
HAS_NEEDS = {
    "peers_transformers.py": importlib.util.find_spec("accelerate") is not None,
    "terms.py": Path("/usr/share/dictd/freedict-eng-deu.dict.dz").is_file(),
}
"""Whether there is what a benchmark needs, but no other part of nmt."""
FILES_OF_FORMATS = {
    "android": '<resources>\n<string name="a">A red dog</string>\n</resources>\n',
    "json": '{"a": "A red dog", "b": ["Two dogs"]}\n',
    "rst": "Title\n=====\n\nA *red* dog.\n",
}
# Benchmarks that have other tests, or need what a test cannot have.
REASONS = {
    **dict.fromkeys(
        ("gpu.py", "gpu_checks.py", "gpu_machine.py", "gpu_preflight.py", "gpu_report.py", "gpu_runs.py",
         "gpu_search.py", "gpu_settings.py", "gpu_toy.py", "gpu_training.py"),
        "test_gpu_benchmark.py runs gpu.py, which imports the others",
    ),
    "catalogs.py": "downloads hundreds of megabytes from Debian",
    "learn.py": "trains on corrections in German for minutes",
    "lengths.py": "a module of planning.py and train.py",
    "lost_sentences.py": "needs a sentence encoder from the web",
    "peers.py": "installs Marian and transformers in environments of their own",
    "peers_marian.py": "needs Marian",
    "ray_driver.py": "needs ray, in an environment of its own",
    "ray_overhead.py": "needs ray, in an environment of its own",
    "race_transformers.py": "needs the vocabulary that race.py makes for Marian",
}  # fmt: skip
RECIPE_ARGUMENTS = {
    "adapt/run.sh": ["F"],
    "backtranslation/run.sh": ["toy", "F/train", "F/val", "F/test", "6"],
    "english_japanese/run.sh": "downloads package lists of Debian",
    "multi30k/run.sh": ["F"],
    "multilingual/run.sh": [],
    "new_language/run.sh": "learns 8,000 subwords, for which the toy text is too small",
    "quickstart/run.sh": [],
    "student/run.sh": ["F"],
    "treebank/run.sh": ["F/trees"],
    "treebank/split.sh": "copies files of a corpus that must be downloaded",
}
"""Recipe -> arguments, or why no test runs it."""
TINY_NMT = """
import os
import sys

command, *words = sys.argv[1:]
# A word-piece vocabulary contains every byte twice.
least = 600 if any("wordpiece" in word for word in words) else 300
vocabulary = [] if any("quickstart" in word or "multilingual" in word for word in words) else [
    f"tokenizer.vocabulary_size={least}",
]
training = [
    *("model.d_model=16", "model.d_ff=16", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1"),
    *("trainer.max_steps=6", "optim.warmup=2", "validation.every_steps=6", "validation.bleu_sentences=2"),
    *("checkpoints.every_steps=3", "checkpoints.every_minutes=null", "trainer.accelerator=cpu"),
]
if any(word.startswith("init=") for word in words):  # that model determines the shape and vocabulary
    training = training[5:]
    vocabulary = []
if any("=" not in word for word in words):  # a prepared corpus has its vocabulary
    vocabulary = []
# A toy corpus has too few pairs for a drawn test set of the usual size.
has_test = any(word.startswith("data.test") for word in words)
draws_test = not has_test and ("data=files" in words or "data=replay" in words)
held_out = ["data.test_size=20"] if draws_test else []
tiny = {
    "preprocess": [*vocabulary, *held_out],
    "train": [*training, *vocabulary, *held_out],
    "demo": ["max_steps=6"],
    "translate": ["decode.max_extra_length=2"],
    # Most translations of an untrained model are flagged.
    "synthesize": ["decode.max_extra_length=2", "flagged=keep"],
}
os.execv(sys.executable, [sys.executable, "-m", "nmt", command, *words, *tiny.get(command, [])])
"""
"""A program `nmt` for scripts, which appends options that make commands small."""


def test_every_script_is_listed():
    names = {path.name for path in BENCHMARKS}
    assert names == set(ARGUMENTS) | set(REASONS)
    assert not set(ARGUMENTS) & set(REASONS)
    assert {str(path.relative_to(ROOT / "recipes")) for path in RECIPES} == set(RECIPE_ARGUMENTS)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, finished) -> Path:
    """Small texts and documents in the formats that the benchmarks read."""
    folder = tmp_path_factory.mktemp("inputs")
    write_toy_text(folder, seed=3)
    for side in ("en", "de"):
        text = (folder / f"test.{side}").read_text()
        (folder / f"long.{side}").write_text(text * 5)
        for name, source in (("val", "valid"), ("test_2016_flickr", "test")):
            shutil.copy(folder / f"{source}.{side}", folder / f"{name}.{side}")
    (folder / "words.tsv").write_text("ka\tka\nlo\tlo\nmi\tmi\n")
    write_pages(folder)
    for format, text in FILES_OF_FORMATS.items():
        path = folder / "formats" / format / "file"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (folder / "ids.source").write_text("5 6 7\n8 9 10 11\n" * 50)
    (folder / "ids.target").write_text("7 6 5\n11 10 9 8\n" * 50)
    catalogs = folder / "catalogs"
    catalogs.mkdir()
    (catalogs / "libreoffice.ru.en").write_text("Open %s\nFile\nThe file is open\n" * 20)
    (catalogs / "libreoffice.ru").write_text("Открыть %s\nФайл\nФайл открыт\n" * 20)
    write_entries(folder, finished)
    (folder / "alarm").mkdir()
    for side, line in (
        ("en", "The dog number {} is sleeping here.\n"),
        ("de", "Der Hund Nummer {} schläft hier.\n"),
    ):
        (folder / "alarm" / f"train.{side}").write_text(
            "".join(line.format(row) for row in range(120))
        )
    write_trees(folder / "trees")
    tests = folder / "clone" / "libretranslate" / "tests" / "test_api"
    tests.mkdir(parents=True)
    (tests / "test_health.py").write_text(
        "def test(client):\n    assert client.get('/health').status_code == 200\n"
    )
    return folder


def write_pages(folder: Path) -> None:
    page = (
        "<html lang='{}'><body><p>{} <code>x = 1</code></p><img alt='{}' src='a.png'></body></html>"
    )
    (folder / "page.html").write_text(page.format("en", "Set", "A cat"))
    (folder / "seite.html").write_text(page.format("de", "Setze", "Eine Katze"))


def write_entries(folder: Path, run: Path) -> None:
    (folder / "entries.en").write_text("ka %s lo\nmi {name} nu\n")
    (folder / "entries.de").write_text("lo %s ka\nnu {name} mi\n")
    words = [
        f"run={run}",
        f"input={folder / 'entries.en'}",
        f"output={folder / 'entries.jsonl'}",
        "format=jsonl",
    ]
    subprocess.run([sys.executable, "-m", "nmt", "translate", *words], check=True)


def write_trees(folder: Path) -> None:
    """A treebank of short sentences."""
    nouns = ["dog", "cat", "bird", "tree", "house", "river"]
    trees = [
        f"( (S (NP (DT The) (NN {noun})) (VP (VBZ {verb})) (. .)) )\n"
        for noun in nouns
        for verb in ("is", "has")
    ]
    for split in ("train", "valid"):
        (folder / split).mkdir(parents=True)
        (folder / split / "a.tree").write_text("".join(trees * 10))


def run_script(command: list[str], folder: Path, limit: int = 1500) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    environment["PATH"] = (
        f"{folder / 'programs'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def write_programs(folder: Path) -> None:
    """The `nmt` and `python` of a script."""
    folder.mkdir()
    # Not a link: Python would not find the packages of a virtual environment that it leads to.
    python = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    for name, text in (("nmt", f"#!{sys.executable}{TINY_NMT}"), ("python", python)):
        program = folder / name
        program.write_text(text)
        program.chmod(0o755)


def expanded(words: list[str], places: dict[str, str]) -> list[str]:
    """The words with places instead of the names that they begin with."""
    parts = [word.split("/", 1) for word in words]
    return ["/".join([places.get(first, first), *rest]) for first, *rest in parts]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_benchmark_runs(name, inputs, finished, toy, here):
    if not HAS_NEEDS.get(name, True):
        pytest.skip("what this benchmark needs is not installed")
    prepared = next(word.partition("=")[2] for word in toy if word.startswith("prepared="))
    places = {"MODEL": str(finished), "PREPARED": prepared, "F": str(inputs)}
    program = "bash" if name.endswith(".sh") else sys.executable
    words = expanded(ARGUMENTS[name], places)
    write_programs(here / "programs")
    assert run_script([program, str(ROOT / "benchmarks" / name), *words], here)


@pytest.mark.slow
def test_a_soak_runs(inputs, finished, here):
    words = ["soak", str(finished), str(inputs / "test.en"), "0.1", "8"]
    printed = run_script([sys.executable, str(ROOT / "benchmarks" / "serve.py"), *words], here)
    assert "SIGTERM ended it with" in printed


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the server's log stays open
def test_a_soak_leaves_no_half_requests(inputs, finished, monkeypatch):
    """Otherwise, the server would wait 120 seconds for the rest of each after SIGTERM."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    benchmark = importlib.import_module("serve")
    monkeypatch.setattr(benchmark, "FAULTS", 0.5)
    lines = (inputs / "test.en").read_text().splitlines()
    server, port = benchmark.begin_server(str(finished), [])
    try:
        benchmark.threading_drain(server)
        soak = benchmark.Soak(port, lines, seconds=5, clients=16, slow=0)
        asyncio.run(soak.run(server.pid))
        assert soak.counts["hangs"] > 6
        server.terminate()
        server.wait(40)
    finally:
        server.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, words in RECIPE_ARGUMENTS.items() if isinstance(words, list)]
)
def test_a_recipe_runs(name, inputs, here):
    write_programs(here / "programs")
    (here / "recipes").symlink_to(ROOT / "recipes")
    words = expanded(RECIPE_ARGUMENTS[name], {"F": str(inputs)})
    assert run_script(["bash", str(ROOT / "recipes" / name), *words], here)
