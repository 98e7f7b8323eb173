"""Race nmt against Marian and transformers: the test scores after the same processor time, from the same subwords.

    python benchmarks/race.py FOLDER [--minutes 5 10 20] [--seeds 1] [--only CONTENDER ...] [--cores 0 1]
        [--cache build/peers] [--pairs train val test_2016_flickr] [--languages en de] [--vocabulary 4000]
        [--rate 0.004] [--figure race.svg]

FOLDER contains a training, a validation and a test file per language; their names are those of --pairs. A cell is one
training run of a contender with a time limit and a seed. The run has one thread and its own core, and enough updates to
use the limit in processor time (user and system, all processes, validation included; preparing the corpus and the short
runs that measure an update do not count). Then the test set is translated (beam 4), and sacrebleu scores plain text.
nmt imports and translates Marian's models: in pre-norm layers, Marian 1.12's search does not normalize the keys of
earlier positions as its training does, and returns nonsense. Finished cells are kept in the cache; the same command
continues.

- nmt: `nmt train minutes=...`, which counts elapsed time and its trials;
- nmt-laptop: `experiment=laptop` with as many updates as fit, which a short run measures once;
- marian: nmt's shape, pre-norm layers, averaged weights, a learning rate that falls from --rate in steps; updates as
  for laptop;
- transformers: Seq2SeqTrainer around Pegasus (pre-norm, sinusoids) of nmt's shape; its rate falls from --rate to 0
  with the time;
- joeynmt: nmt's shape, pre-norm layers; JoeyNMT 2.3 has no working schedule that ends; updates as for laptop.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import sacrebleu
from peers import environment, prepare

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
RATED = ("marian", "transformers")
"""The contenders whose learning rate is --rate."""
SAVING = 5
"""Seconds that remain for saving at the end."""


stopped = threading.Event()
TRIALS = threading.Lock()


@dataclass
class Race:
    corpus: Path
    cache: Path
    pairs: list[str]
    languages: list[str]
    vocabulary: int
    rate: float
    """The peak learning rate of marian and transformers."""

    @property
    def work(self) -> Path:
        name = "-".join(
            [self.corpus.resolve().name, *self.pairs, *self.languages, str(self.vocabulary)]
        )
        return self.cache.absolute() / "race" / name


@dataclass
class Cell:
    race: Race
    contender: str
    minutes: float
    seed: int

    @property
    def folder(self) -> Path:
        name = f"{self.contender}-{self.minutes:g}-{self.seed}"
        if self.contender in RATED:
            name += f"-{self.race.rate:g}"
        return self.race.work / name


def processor_seconds(session: int) -> float:
    """The processor time of a session's processes and of their children that have ended."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # has ended
            continue
        if int(fields[3]) == session:
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def run(command: list[Any], log: Path, core: int) -> float:
    """Run a command on one core and return its processor time."""
    words = ["taskset", "-c", str(core), *map(str, command)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("ab") as file:
        process = subprocess.Popen(
            words, stdout=file, stderr=file, env=variables, start_new_session=True
        )
        spent = 0.0
        while process.poll() is None and not stopped.is_set():
            spent = max(spent, processor_seconds(process.pid))
            time.sleep(0.2)
    if stopped.is_set():
        process.terminate()
    if process.wait():
        raise RuntimeError(
            f"{shlex.join(words)} failed with exit code {process.returncode}; see {log}"
        )
    return spent


def nmt_corpus(race: Race) -> list[str]:
    splits = zip(("train", "valid", "test"), race.pairs, strict=True)
    source, target = race.languages
    return [
        *("data=files", f"data.source={source}", f"data.target={target}"),
        *(f"data.{ours}={race.corpus.resolve() / theirs}" for ours, theirs in splits),
        *(
            "tokenizer=bpe4k",
            f"tokenizer.vocabulary_size={race.vocabulary}",
            f"prepared={race.work / 'prepared'}",
        ),
    ]


def translated(cell: Cell, core: int, model: Path) -> list[str]:
    """The test set, translated by nmt."""
    source = f"{cell.race.corpus.resolve() / cell.race.pairs[2]}.{cell.race.languages[0]}"
    options = [
        "protect=none",
        f"input={source}",
        f"output={cell.folder / 'test'}",
        "overwrite=true",
    ]
    run([sys.executable, "-m", "nmt", "translate", model, *options], cell.folder / "log", core)
    return (cell.folder / "test").read_text(encoding="utf-8").splitlines()


def nmt(cell: Cell, core: int, python: Path, options: list[str]) -> tuple[float, list[str]]:
    training = [
        "train",
        *nmt_corpus(cell.race),
        f"seed={cell.seed}",
        f"run={cell.folder / 'run'}",
        *options,
    ]
    spent = run([python, "-m", "nmt", *training], cell.folder / "log", core)
    return spent, translated(cell, core, cell.folder / "run")


def nmt_minutes(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    return nmt(cell, core, python, [f"minutes={cell.minutes:g}"])


def fitting(cell: Cell, core: int, options: Callable[[int, str], list[Any]]) -> int:
    """How many updates fit in the time: two runs of `options(updates, name)` measure them once for all cells."""
    trial = cell.race.work / f"{cell.contender}-seconds.json"
    with TRIALS:
        if not trial.exists():
            short, long = (
                run(options(size, f"trial-{size}"), cell.folder / "log", core) for size in (20, 120)
            )
            trial.write_text(json.dumps([(long - short) / 100, short]))
    seconds, start = json.loads(trial.read_text())
    return int((60 * cell.minutes - start - SAVING) / seconds)


def nmt_laptop(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    recipe = ["experiment=laptop", "checkpoints.every_minutes=null", "validation.bleu_sentences=0"]

    def schedule(updates: int) -> list[str]:
        every = (
            f"validation.every_steps={-(-updates // 4)}",
            f"checkpoints.every_steps={-(-updates // 20)}",
        )
        return [
            *recipe,
            f"trainer.max_steps={updates}",
            f"optim.warmup={max(2, updates // 12)}",
            *every,
        ]

    def trial(updates: int, name: str) -> list[Any]:
        words = [python, "-m", "nmt", "train", *nmt_corpus(cell.race), *schedule(updates)]
        return [*words, f"run={cell.folder / name}"]

    return nmt(cell, core, python, schedule(fitting(cell, core, trial)))


MARIAN = (
    "--type transformer --enc-depth 3 --dec-depth 3 --dim-emb 128 --transformer-dim-ffn 512 --transformer-heads 4 "
    "--transformer-preprocess n --transformer-postprocess da --transformer-postprocess-top n --tied-embeddings-all "
    "--transformer-ffn-activation relu --transformer-dropout 0.1 --label-smoothing 0.1 "
    "--optimizer-params 0.9 0.98 1e-9 --clip-norm 0 --exponential-smoothing 0.01 "
    "--lr-decay-inv-sqrt 0 --lr-decay 0.9 --lr-decay-strategy batches "
    "--mini-batch 1000 --mini-batch-words 700 --mini-batch-round-up false --cpu-threads 1 --workspace 1024"
)


def marian(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    work, folder = cell.race.work / "marian", cell.folder

    def training(updates: int, name: str) -> list[Any]:
        files = f"--train-sets {work}/train.source {work}/train.target --valid-sets {work}/valid.source {work}/valid.target"
        schedule = (
            f"--learn-rate {cell.race.rate:g} --lr-warmup {updates // 12} --lr-decay-start {updates // 2} --lr-decay-freq {max(1, updates // 40)} "
            f"--after {updates}u --valid-freq {updates}u --save-freq {updates}u"
        )
        text = (
            f"--model {folder / name}.npz {files} --vocabs {work}/vocab.yml {work}/vocab.yml --max-length 200 "
            f"--shuffle-in-ram --tempdir {folder} --seed {cell.seed} --valid-metrics cross-entropy "
            f"--valid-mini-batch 32 --overwrite --disp-freq 100u {MARIAN} {schedule}"
        )
        return [python, "-m", "pymarian", "train", *shlex.split(text)]

    spent = run(training(fitting(cell, core, training), "model"), folder / "log", core)
    (folder / "marian").mkdir()
    for file in (
        folder / "model.npz",
        *(work / name for name in ("source.spm", "target.spm", "vocab.yml")),
    ):
        shutil.copy(file, folder / "marian")
    names = "models: [model.npz]\nvocabs: [vocab.yml, vocab.yml]\nnormalize: 0.6\n"
    (folder / "marian" / "decoder.yml").write_text(names)
    options = [folder / "marian", f"output={folder / 'imported'}"]
    run([sys.executable, "-m", "nmt", "import", *options], folder / "log", core)
    return spent, translated(cell, core, folder / "imported")


def texts_of(race: Race, file: Path) -> list[str]:
    """Plain text from a file of token ids."""
    from nmt.text import load_tokenizer

    tokenizer = load_tokenizer(race.work / "prepared" / "tokenizer.model")
    return [
        tokenizer.decode([int(id) for id in line.split() if id.isdecimal()]) for line in file.open()
    ]


def transformers(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    work, folder, log = cell.race.work, cell.folder, cell.folder / "log"
    script = [python, HERE / "race_transformers.py"]
    seconds = 60 * cell.minutes - SAVING
    training = [*script, "train", work, folder / "model", cell.seed, seconds, cell.race.rate]
    spent = run(training, log, core)
    run([*script, "translate", folder / "model", work / "test.source", folder / "ids"], log, core)
    return spent, texts_of(cell.race, folder / "ids")


def joeynmt(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    work, folder = cell.race.work, cell.folder

    def training(updates: int, name: str) -> list[Any]:
        ids = {"level": "word", "max_length": 200, "voc_file": str(folder / "vocabulary")}
        stack = {
            **{
                "type": "transformer",
                "num_layers": 3,
                "num_heads": 4,
                "hidden_size": 128,
                "ff_size": 512,
            },
            **{
                "embeddings": {"embedding_dim": 128, "scale": True},
                "dropout": 0.1,
                "layer_norm": "pre",
            },
        }
        settings = {
            **{
                "name": name,
                "model_dir": str(folder / name),
                "use_cuda": False,
                "random_seed": cell.seed,
            },
            "data": {
                **{
                    "train": f"{work}/train",
                    "dev": f"{work}/valid",
                    "test": f"{work}/test",
                    "dataset_type": "plain",
                },
                **{
                    "sample_dev_subset": 10,
                    "src": ids | {"lang": "source"},
                    "trg": ids | {"lang": "target"},
                },
            },
            "training": {
                **{
                    "batch_type": "token",
                    "batch_size": 1000,
                    "normalization": "tokens",
                    "label_smoothing": 0.1,
                },
                **{
                    "optimizer": "adam",
                    "adam_betas": [0.9, 0.98],
                    "scheduling": "warmupinversesquareroot",
                },
                **{"learning_rate": 0.003, "learning_rate_warmup": updates // 12},
                **{
                    "epochs": 1000,
                    "updates": updates,
                    "validation_freq": updates,
                    "logging_freq": updates,
                },
            },
            "testing": {
                "beam_size": 4,
                "beam_alpha": 0.6,
                "batch_type": "token",
                "batch_size": 2000,
            },
            "model": {
                "tied_embeddings": True,
                "tied_softmax": True,
                "encoder": stack,
                "decoder": stack,
            },
        }
        (folder / "vocabulary").write_text(
            "".join(f"{id}\n" for id in range(3, cell.race.vocabulary))
        )
        (folder / f"{name}.yaml").write_text(json.dumps(settings))  # JSON is YAML
        return [python, "-m", "joeynmt", "train", folder / f"{name}.yaml", "--skip-test"]

    spent = run(training(fitting(cell, core, training), "model"), folder / "log", core)
    run(
        [python, "-m", "joeynmt", "test", folder / "model.yaml", "-o", folder / "ids"],
        folder / "log",
        core,
    )
    return spent, texts_of(cell.race, folder / "ids.test")


CONTENDERS: dict[str, tuple[str, Callable[[Cell, int, Path], tuple[float, list[str]]]]] = {
    "nmt": ("", nmt_minutes),
    "nmt-laptop": ("", nmt_laptop),
    "marian": ("marian", marian),
    "transformers": ("transformers", transformers),
    "joeynmt": ("joeynmt", joeynmt),
}


def race_cell(cell: Cell, core: int, python: Path) -> None:
    shutil.rmtree(cell.folder, ignore_errors=True)  # of a cell that was stopped
    cell.folder.mkdir(parents=True)
    seconds, hypotheses = CONTENDERS[cell.contender][1](cell, core, python)
    reference = cell.race.corpus / f"{cell.race.pairs[2]}.{cell.race.languages[1]}"
    references = [reference.read_text(encoding="utf-8").splitlines()]
    scores = {metric.__class__.__name__: metric.corpus_score(hypotheses, references).score
              for metric in (sacrebleu.BLEU(), sacrebleu.CHRF())}  # fmt: skip
    (cell.folder / "result.json").write_text(json.dumps({"seconds": round(seconds, 1), **scores}))


def work_on(
    cells: Iterator[Cell], lock: threading.Lock, core: int, pythons: dict[str, Path]
) -> None:
    """Race cells on a core until none is left."""
    while True:
        with lock:
            cell = next(cells, None)
        if cell is None:
            return
        print(
            f"{cell.contender} {cell.minutes:g} {cell.seed}: begins on core {core}",
            file=sys.stderr,
            flush=True,
        )
        race_cell(cell, core, pythons[CONTENDERS[cell.contender][0]])
        print(
            f"{cell.contender} {cell.minutes:g} {cell.seed}: {result(cell)}",
            file=sys.stderr,
            flush=True,
        )


def result(cell: Cell) -> dict[str, float]:
    file = cell.folder / "result.json"
    return json.loads(file.read_text()) if file.exists() else {}


def table(race: Race, contenders: list[str], minutes: list[float], seeds: list[int]) -> str:
    """BLEU and chrF per contender and limit: means over the seeds, with the range of BLEU."""
    rows = [f"| {race.work.name} | " + " | ".join(f"{limit:g} min" for limit in minutes) + " |"]
    rows += ["|---" * (1 + len(minutes)) + "|"]
    for contender in contenders:
        texts = []
        for limit in minutes:
            results = [
                found for seed in seeds if (found := result(Cell(race, contender, limit, seed)))
            ]
            bleu, chrf = ([found[metric] for found in results] for metric in ("BLEU", "CHRF"))
            spread = f" ±{(max(bleu) - min(bleu)) / 2:.1f}" if len(bleu) > 1 else ""
            texts.append(f"{mean(bleu):.1f}{spread}, {mean(chrf):.1f}" if bleu else "")
        rows.append(f"| {contender} | " + " | ".join(texts) + " |")
    return "\n".join(rows)


def draw(
    race: Race, contenders: list[str], minutes: list[float], seeds: list[int], path: Path
) -> None:
    """BLEU against processor minutes: a point for each cell, a line through the means."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "race"})
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    title = f"{race.corpus.resolve().name}, {' to '.join(race.languages)}"
    axes = figure.add_subplot(xscale="log", xlabel="processor minutes", ylabel="BLEU", title=title)
    for contender in contenders:
        cells = [
            [result(Cell(race, contender, limit, seed)) for seed in seeds] for limit in minutes
        ]
        points = [
            (limit, [found["BLEU"] for found in row if found])
            for limit, row in zip(minutes, cells, strict=True)
        ]
        points = sorted((limit, scores) for limit, scores in points if scores)
        (line,) = axes.plot(
            [x for x, _ in points], [mean(scores) for _, scores in points], label=contender
        )
        for x, scores in points:
            axes.plot([x] * len(scores), scores, "o", color=line.get_color())
    axes.set_xticks(minutes, [f"{limit:g}" for limit in minutes])
    axes.minorticks_off()
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1].strip())
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5, 10, 20])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=[*CONTENDERS])
    parser.add_argument("--cores", type=int, nargs="+", default=sorted(os.sched_getaffinity(0)))
    parser.add_argument("--cache", type=Path, default=Path("build/peers"))
    parser.add_argument("--pairs", nargs=3, default=["train", "val", "test_2016_flickr"])
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--rate", type=float, default=0.004)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    if "nmt" in options.only and min(options.minutes) < 1:
        parser.error(
            "--minutes: the contender nmt needs at least 1, or else --only other contenders"
        )
    race = Race(
        options.corpus,
        options.cache,
        options.pairs,
        options.languages,
        options.vocabulary,
        options.rate,
    )
    race.work.mkdir(parents=True, exist_ok=True)
    prepare(race.work, nmt_corpus(race))
    pythons = {"": Path(sys.executable)}
    for name in {CONTENDERS[contender][0] for contender in options.only} - {""}:
        pythons[name], trouble = environment(options.cache.absolute(), name)
        if trouble:
            sys.exit(f"{name} {trouble}")
    every = (
        Cell(race, *setting) for setting in product(options.only, options.minutes, options.seeds)
    )
    cells, lock = iter([cell for cell in every if not result(cell)]), threading.Lock()
    with ThreadPoolExecutor(len(options.cores)) as pool:
        try:
            for racing in [
                pool.submit(work_on, cells, lock, core, pythons) for core in options.cores
            ]:
                racing.result()
        finally:  # of an error or Ctrl-C: the other trainings end, too
            stopped.set()
    shown = race, options.only, options.minutes, options.seeds
    print(table(*shown))
    if options.figure:
        draw(*shown, options.figure)


if __name__ == "__main__":
    main()
