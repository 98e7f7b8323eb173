"""Compare nmt with Marian, transformers and fairseq: training, and translation with the same weights.

    python benchmarks/peers.py FOLDER [--shapes small|tiny] [--rounds 3] [--cache build/peers] [--only PART]

FOLDER contains train, val and test_2016_flickr (.en and .de) of Multi30k. The first run creates an environment in the
cache for each peer, with pinned versions from PyPI, prepares the corpus, and trains a Marian model for some minutes.

- Training starts from random weights, with the same subwords, shapes, dropout, label smoothing, Adam, learning rates
  and threads, and about the same number of target tokens per update. Processes take turns, one per measurement; the
  time before the first report does not count. Tokens are target tokens with the end symbol, without padding. The
  smoothed loss of the last report shows that all learn the same, although initial weights and batches differ.
- Translation uses Marian's model, imported by `nmt import`, with Marian, nmt and transformers
  (`benchmarks/translate.py`), after loading and a warm-up. nmt takes raw lines; the other programs take tokens.

PART is training or translating. The script prints medians over rounds, the speed of nmt (`nmt train`; `nmt translate
engine=ctranslate2 precision=int8`) relative to each peer, and the peak memory of a process.
"""

import argparse
import csv
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
THREADS = os.cpu_count() or 1
CPU_TORCH = [
    "--no-deps",
    "--extra-index-url",
    "https://download.pytorch.org/whl/cpu",
    "torch==2.13.0+cpu",
]
PACKAGES = {
    "marian": [["pymarian==1.12.42"]],
    "transformers": [CPU_TORCH, ["torch==2.13.0", "transformers==5.23.0", "accelerate==1.15.0"]],
    "fairseq": [CPU_TORCH, ["torch==2.13.0", "fairseq==0.12.2"]],
    "joeynmt": [
        CPU_TORCH,
        ["torch==2.13.0", "joeynmt==2.3.0", "importlib_metadata", "setuptools<80"],
    ],
}
IMPORTS = {
    "marian": "pymarian",
    "transformers": "transformers, accelerate",
    "fairseq": "fairseq",
    "joeynmt": "joeynmt.training",
}
INSTALL_SECONDS = 600
SHAPES = {"small": (256, 1024, 0.1, 8000), "tiny": (128, 512, 0.2, 4000)}
"""d_model, d_ff, dropout and vocabulary; three layers in each stack and four heads."""
TOKENS, UPDATES, REPORT = 2000, 20, 5
"""Tokens of an update, updates of a training, and between its reports."""
FULL = 1.15
"""nmt's limit counts padding, and holds for both sides; the others' limits are of tokens of one side, or sentences."""
RATE, WARM_UP = 1e-3, 100
MODEL_UPDATES = 500
"""Of the model that translates."""
LINES = 300
BEAMS = {"beam 4": 4, "greedy": 1}
TRANSLATORS = ["nmt torch", "nmt ctranslate2 float32", "nmt ctranslate2 int8", "Hugging Face"]
MARIAN_REPORT = re.compile(r"Cost ([\d.]+) \* ([\d,]+) @.* Time ([\d.]+)s")


@dataclass
class Setting:
    corpus: Path
    cache: Path
    shapes: str
    rounds: int

    @property
    def work(self) -> Path:
        return self.cache / self.shapes


@dataclass
class Report:
    seconds: float
    tokens: float
    loss: float


def environment(cache: Path, name: str) -> tuple[Path, str]:
    """The Python of a peer's environment, and why it cannot be used ("": it can)."""
    folder = cache / "environments" / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    done = folder / "installed"
    for packages in [] if done.exists() else PACKAGES[name]:
        pip = [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--retries",
            "1",
            *packages,
        ]
        try:
            subprocess.run(pip, timeout=INSTALL_SECONDS, check=True, stdout=sys.stderr)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            return python, f"does not install: {error}"
    done.touch()
    found = subprocess.run(
        [python, "-c", f"import {IMPORTS[name]}"], capture_output=True, text=True
    )
    return (
        python,
        f"does not run: {found.stderr.strip().splitlines()[-1]}" if found.returncode else "",
    )


def measure(command: list[Any], lines: str = "") -> tuple[list[str], float]:
    """What a command says on both its outputs when given these lines, and the most memory of one of its processes."""
    command = [str(part) for part in command]
    options = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    variables = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, env=variables, **options)
    process.stdin.write(lines)
    process.stdin.close()
    said = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("\n".join([shlex.join(command), *said[-20:]]))
    return said, usage.ru_maxrss / 1e6


def corpus_options(setting: Setting) -> list[str]:
    splits = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    files = [f"data.{ours}={setting.corpus / theirs}" for ours, theirs in splits.items()]
    size = f"tokenizer.vocabulary_size={SHAPES[setting.shapes][3]}"
    return [
        "data=files",
        "data.name=peers",
        *files,
        "tokenizer=bpe4k",
        size,
        f"prepared={setting.work / 'prepared'}",
    ]


def prepare(work: Path, options: list[str]) -> None:
    """Prepare the corpus; write its subwords for Marian (text) and transformers (ids), and Marian's vocabulary."""
    from nmt.data import PreparedSplit
    from nmt.text import load_tokenizer

    marian = work / "marian"
    if (marian / "vocab.yml").exists():
        return
    subprocess.run([sys.executable, "-m", "nmt", "preprocess", *options], check=True)
    symbols = load_tokenizer(work / "prepared" / "tokenizer.model").vocabulary()
    marian.mkdir(exist_ok=True)
    for split in ("train", "valid", "test"):
        columns = PreparedSplit(work / "prepared" / split).table
        for side in ("source", "target"):
            sentences = columns.column(side).to_pylist()
            for name, shown in ((work / split, str), (marian / split, symbols.__getitem__)):
                Path(f"{name}.{side}").write_text(
                    "".join(" ".join(map(shown, ids)) + "\n" for ids in sentences)
                )
    for side in ("source", "target"):
        shutil.copy(work / "prepared" / "tokenizer.model", marian / f"{side}.spm")
    table = [
        f"{json.dumps(entry)}: {id}\n" for id, entry in enumerate(["</s>", "<unk>", *symbols[4:]])
    ]
    (marian / "vocab.yml").write_text("".join(table))


def train_nmt(setting: Setting, python: Path) -> tuple[list[Report], float]:
    run = setting.work / "run"
    shutil.rmtree(run, ignore_errors=True)
    options = [
        *(*corpus_options(setting), f"model={setting.shapes}", f"run={run}"),
        *(f"optim.learning_rate={RATE}", f"optim.warmup={WARM_UP}"),
        f"batching.tokens_per_update={round(TOKENS * FULL)}",
        *(
            "batching.micro_batches=1",
            f"trainer.max_steps={UPDATES}",
            f"trainer.log_every_n_steps={REPORT}",
        ),
        *(
            "validation.every_steps=1000000",
            "checkpoints.every_minutes=null",
            "trainer.accelerator=cpu",
        ),
        "trainer.precision=32-true",  # as the others compute
    ]
    _, memory = measure([python, "-m", "nmt", "train", *options])
    with (run / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["loss"]]  # the others are validations
    values = [
        tuple(float(row[key]) for key in ("seconds", "tokens_per_second", "loss")) for row in rows
    ]
    windows = [(end - begin, rate, loss) for (begin, *_), (end, rate, loss) in pairwise(values)]
    return [Report(seconds, seconds * rate, loss) for seconds, rate, loss in windows], memory


def marian_options(setting: Setting, model: Path, updates: int, report: int) -> list[str]:
    width, inner, dropout, _ = SHAPES[setting.shapes]
    folder = setting.work / "marian"
    return shlex.split(
        f"--type transformer --model {model} --train-sets {folder}/train.source {folder}/train.target "
        f"--vocabs {folder}/vocab.yml {folder}/vocab.yml --max-length 200 --shuffle-in-ram --tempdir {setting.work} "
        f"--enc-depth 3 --dec-depth 3 --dim-emb {width} --transformer-dim-ffn {inner} --transformer-heads 4 "
        "--transformer-preprocess '' --transformer-postprocess dan --transformer-ffn-activation relu "
        f"--transformer-dropout {dropout} --transformer-dropout-attention {dropout} "
        f"--transformer-dropout-ffn {dropout} --label-smoothing 0.1 --tied-embeddings-all "
        "--optimizer-params 0.9 0.98 1e-9 --clip-norm 0 "
        f"--learn-rate {RATE} --lr-warmup {WARM_UP} --lr-decay-inv-sqrt {WARM_UP} --seed 1 --normalize 0.6 "
        f"--mini-batch 1000 --mini-batch-words {TOKENS} --mini-batch-round-up false --cpu-threads {THREADS} --sync-sgd "
        f"--workspace 1024 --no-reload --disp-freq {report}u --after {updates}u"
    )


def train_marian(setting: Setting, python: Path) -> tuple[list[Report], float]:
    with tempfile.TemporaryDirectory() as folder:
        options = marian_options(setting, Path(folder) / "model.npz", UPDATES, REPORT)
        said, memory = measure([python, "-m", "pymarian", "train", *options])
    found = [match for line in said if (match := MARIAN_REPORT.search(line))]
    return [Report(float(m[3]), int(m[2].replace(",", "")), float(m[1])) for m in found[1:]], memory


def train_transformers(setting: Setting, python: Path) -> tuple[list[Report], float]:
    sizes = [*SHAPES[setting.shapes], RATE, WARM_UP, TOKENS, UPDATES, REPORT]
    said, memory = measure([python, HERE / "peers_transformers.py", setting.work / "train", *sizes])
    return [Report(**json.loads(line)) for line in said if line.startswith('{"')][1:], memory


TRAINERS: dict[str, Callable[[Setting, Path], tuple[list[Report], float]]] = {
    "nmt": train_nmt,
    "marian": train_marian,
    "transformers": train_transformers,
}


def compare_training(setting: Setting, pythons: dict[str, Path]) -> None:
    made: dict[str, list[tuple[list[Report], float]]] = {name: [] for name in pythons}
    for _ in range(setting.rounds):
        for name, python in pythons.items():
            made[name].append(TRAINERS[name](setting, python))
    rates = {name: [sum(r.tokens for r in own) / sum(r.seconds for r in own) for own, _ in runs]
             for name, runs in made.items()}  # fmt: skip
    print(
        f"training, model={setting.shapes}, {UPDATES} updates, {setting.rounds} rounds, {THREADS} threads"
    )
    for name, runs in made.items():
        last, tokens = (
            runs[-1][0][-1],
            statistics.mean(r.tokens / REPORT for own, _ in runs for r in own),
        )
        print(
            f"  {name:24} {statistics.median(rates[name]):8,.0f} tokens/s  nmt {ratio(rates, 'nmt', name):5.2f} x  "
            f"{tokens:6,.0f} tokens an update  loss {last.loss:.2f}  {max(memory for _, memory in runs):.2f} GB"
        )


def ratio(rates: dict[str, list[float]], one: str, other: str) -> float:
    """The median over rounds of how many times as fast the one is."""
    return statistics.median(a / b for a, b in zip(rates[one], rates[other], strict=True))


def translators(setting: Setting, marian: Path) -> dict[str, list[Any]]:
    """The commands that translate with Marian's weights."""
    from translate import prepare as with_exports

    work = setting.work / "marian"
    model, imported, exports = (
        work / "model.npz",
        setting.work / "imported",
        setting.work / "exports",
    )
    if not model.exists():
        options = marian_options(setting, model, MODEL_UPDATES, 50)
        options.remove("--sync-sgd")  # a tenth faster
        subprocess.run([marian, "-m", "pymarian", "train", *options], check=True, stdout=sys.stderr)
    if not exports.exists():
        nmt = [
            sys.executable,
            "-m",
            "nmt",
            "import",
            f"path={model}",
            f"output={imported}",
            "source=en",
            "target=de",
        ]
        subprocess.run(nmt, check=True, stdout=sys.stderr)
        exports.mkdir()
        with_exports(str(imported), exports)
        convert = [
            marian,
            "-m",
            "pymarian",
            "convert",
            "-f",
            model,
            "-t",
            work / "int8.bin",
            "-g",
            "intgemm8avx2",
        ]
        subprocess.run(convert, check=True, stdout=sys.stderr)
    text, tokens = setting.work / "prepared" / "test.en", work / "test.source"
    contend = [sys.executable, HERE / "translate.py", "contend"]
    peer = [marian, HERE / "peers_marian.py"]
    return {
        **{name: [*contend, name, exports / "model", text, LINES] for name in TRANSLATORS},
        "marian float32": [*peer, model, work / "vocab.yml", tokens, LINES],
        "marian int8": [*peer, work / "int8.bin", work / "vocab.yml", tokens, LINES],
    }


def compare_translating(setting: Setting, marian: Path) -> None:
    commands = translators(setting, marian)
    beams = "".join(f"{beam}\n" for beam in BEAMS.values())
    said: dict[str, list[list[dict[str, float]]]] = {name: [] for name in commands}
    for _ in range(setting.rounds):
        for name, command in commands.items():
            lines, _ = measure(command, beams)
            said[name].append([json.loads(line) for line in lines if line.startswith('{"')])
    for number, label in enumerate(BEAMS):
        print(
            f"translating, {label}, model={setting.shapes}, {LINES} lines, {setting.rounds} rounds, {THREADS} threads"
        )
        rates = {
            name: [LINES / run[number]["seconds"] for run in runs] for name, runs in said.items()
        }
        for name, runs in said.items():
            rate, times = statistics.median(rates[name]), ratio(rates, TRANSLATORS[2], name)
            last = "{tokens:6.0f} tokens  {memory:.2f} GB".format(**runs[-1][number])
            print(f"  {name:24} {rate:8.1f} sentences/s  nmt {times:5.2f} x  {last}")


def main() -> None:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1].strip())
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--shapes", choices=SHAPES, default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=Path("build/peers"))
    parser.add_argument("--only", choices=("training", "translating"))
    options = vars(parser.parse_args())
    only = options.pop("only")
    setting = Setting(**options)
    setting.work.mkdir(parents=True, exist_ok=True)
    prepare(setting.work, corpus_options(setting))
    usable = {"nmt": Path(sys.executable)}
    for name in PACKAGES:
        python, trouble = environment(setting.cache.absolute(), name)
        if trouble or name not in TRAINERS:
            print(f"{name} {trouble or 'installs and imports; no contender is written for it'}")
        else:
            usable[name] = python
    if only != "translating":
        compare_training(setting, usable)
    if only != "training" and "marian" in usable:
        compare_translating(setting, usable["marian"])


if __name__ == "__main__":
    main()
