"""Race nmt against Marian and transformers: the test scores after the same processor time, from the same subwords.

    python benchmarks/race.py FOLDER [--minutes 5 10 20] [--seeds 1] [--only CONTENDER ...] [--cores 0 1]
        [--cache build/peers] [--pairs train val test_2016_flickr] [--languages en de] [--vocabulary 4000]

FOLDER contains a training, a validation and a test file per language; their names are those of --pairs. A cell is one
training run of a contender with a time limit and a seed. The run has one thread and its own core, and ends when the
processor time (user and system) of all its processes reaches the limit: trials and validation count, preparing the
corpus does not. Then the contender's own search translates the test set (beam 4), and sacrebleu scores plain text.
Finished cells are kept in the cache; the same command continues.

- nmt: `nmt train minutes=...`; nmt laptop: `experiment=laptop` with as many updates as fit;
- marian: Marian with nmt's shape, pre-norm layers, small updates and averaged weights (exponential smoothing);
- transformers: Seq2SeqTrainer around MBart (pre-norm) of nmt's shape, whose learning rate falls to 0 with the time.
"""

import argparse
import json
import os
import shlex
import signal
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
SHARE = 0.97
"""Share of the limit that transformers trains for; the rest is for saving."""


@dataclass
class Race:
    corpus: Path
    cache: Path
    pairs: list[str]
    languages: list[str]
    vocabulary: int

    @property
    def work(self) -> Path:
        return self.cache.absolute() / "race" / f"{self.corpus.resolve().name}-{self.vocabulary}"


@dataclass
class Cell:
    race: Race
    contender: str
    minutes: float
    seed: int

    @property
    def folder(self) -> Path:
        return self.race.work / f"{self.contender.replace(' ', '-')}-{self.minutes:g}-{self.seed}"


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


def run(command: list[Any], log: Path, core: int, limit: float = float("inf")) -> float:
    """Run a command on one core, ask it to stop when its processor time reaches the limit, and return this time."""
    words = ["taskset", "-c", str(core), *map(str, command)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("ab") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file, env=variables, start_new_session=True)
        spent, asked = 0.0, False
        while process.poll() is None:
            spent = max(spent, processor_seconds(process.pid))
            if spent > limit and not asked:
                process.send_signal(signal.SIGTERM)
                asked = True
            time.sleep(0.2)
    if process.returncode and not asked:
        raise RuntimeError(f"{shlex.join(words)} failed with exit code {process.returncode}; see {log}")
    return spent


def nmt_corpus(race: Race) -> list[str]:
    splits = zip(("train", "valid", "test"), race.pairs, strict=True)
    source, target = race.languages
    return [
        *("data=files", f"data.source={source}", f"data.target={target}"),
        *(f"data.{ours}={race.corpus.resolve() / theirs}" for ours, theirs in splits),
        *("tokenizer=bpe4k", f"tokenizer.vocabulary_size={race.vocabulary}", f"prepared={race.work / 'prepared'}"),
    ]


def detokenized(file: Path) -> list[str]:
    """Plain text from a file of subwords, joined as SentencePiece does."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return ["".join(line.split()).replace("▁", " ").strip() for line in lines]


def nmt(cell: Cell, core: int, python: Path, options: list[str]) -> tuple[float, list[str]]:
    folder, log = cell.folder, cell.folder / "log"
    command = [python, "-m", "nmt"]
    training = [*command, "train", *nmt_corpus(cell.race), f"seed={cell.seed}", f"run={folder / 'run'}", *options]
    spent = run(training, log, core)
    source = f"{cell.race.corpus.resolve() / cell.race.pairs[2]}.{cell.race.languages[0]}"
    files = [f"run={folder / 'run'}", f"input={source}", f"output={folder / 'test'}", "overwrite=true"]
    run([*command, "translate", *files], log, core)
    return spent, (folder / "test").read_text(encoding="utf-8").splitlines()


def nmt_minutes(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    return nmt(cell, core, python, [f"minutes={cell.minutes:g}"])


def nmt_laptop(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    """The recipe with as many updates as fit: measured once and kept, because a schedule needs to know them."""
    recipe = ["experiment=laptop", "checkpoints.every_minutes=null", "validation.bleu_sentences=0"]
    trial = cell.race.work / "laptop-seconds.json"
    if not trial.exists():
        sizes = []
        for updates in (20, 120):
            options = [*recipe, f"trainer.max_steps={updates}", "optim.warmup=2", f"run={cell.folder}/trial-{updates}"]
            command = [python, "-m", "nmt", "train", *nmt_corpus(cell.race), *options]
            sizes.append(run(command, cell.folder / "log", core))
        trial.write_text(json.dumps([(sizes[1] - sizes[0]) / 100, sizes[0]]))
    seconds, start = json.loads(trial.read_text())
    updates = int((60 * cell.minutes - start - 5) / seconds * 0.97)
    steps = [f"trainer.max_steps={updates}", f"optim.warmup={updates // 8}", f"validation.every_steps={updates // 4}"]
    return nmt(cell, core, python, [*recipe, *steps, f"checkpoints.every_steps={-(-updates // 20)}"])


MARIAN = (
    "--type transformer --enc-depth 3 --dec-depth 3 --dim-emb 128 --transformer-dim-ffn 512 --transformer-heads 4 "
    "--transformer-preprocess n --transformer-postprocess da --transformer-postprocess-top n --tied-embeddings-all "
    "--transformer-ffn-activation relu --transformer-dropout 0.1 --label-smoothing 0.1 "
    "--optimizer-params 0.9 0.98 1e-9 --clip-norm 0 --learn-rate 0.002 --lr-warmup 300 --lr-decay-inv-sqrt 300 "
    "--exponential-smoothing 0.002 --mini-batch 1000 --mini-batch-words 700 --mini-batch-round-up false "
    "--valid-freq 500u"
)


def marian(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    race, folder, log = cell.race, cell.folder, cell.folder / "log"
    work, model = race.work, folder / "model.npz"
    vocabularies = f"--vocabs {work}/marian/vocab.yml {work}/marian/vocab.yml"
    files = {split: " ".join(f"{work}/marian/{split}.{side}" for side in ("source", "target"))
             for split in ("train", "valid")}  # fmt: skip
    training = (
        f"--model {model} --train-sets {files['train']} --valid-sets {files['valid']} {vocabularies} "
        f"--max-length 200 --shuffle-in-ram --tempdir {folder} --seed {cell.seed} --cpu-threads 1 --workspace 1024 "
        "--valid-metrics cross-entropy --keep-best --quiet-validation --save-freq 1000000u --overwrite "
        f"--valid-mini-batch 32 --sigterm save-and-exit --after 1000000u --disp-freq 100u {MARIAN}"
    )
    spent = run([python, "-m", "pymarian", "train", *shlex.split(training)], log, core, 60 * cell.minutes)
    best = folder / "model.npz.best-cross-entropy.npz"
    decoding = (
        f"--models {best if best.exists() else model} {vocabularies} --input {work}/marian/test.source "
        f"--output {folder}/test --beam-size 4 --normalize 0.6 --mini-batch 32 --maxi-batch 100 --maxi-batch-sort src "
        "--max-length-factor 3 --cpu-threads 1 --workspace 512 --quiet"
    )
    run([python, "-m", "pymarian", "decode", *shlex.split(decoding)], log, core)
    return spent, detokenized(folder / "test")


def transformers(cell: Cell, core: int, python: Path) -> tuple[float, list[str]]:
    from nmt.text import load_tokenizer

    work, folder, log = cell.race.work, cell.folder, cell.folder / "log"
    script = [python, HERE / "race_transformers.py"]
    spent = run([*script, "train", work, folder / "model", cell.seed, 60 * SHARE * cell.minutes], log, core)
    run([*script, "translate", folder / "model", work / "test.source", folder / "ids"], log, core)
    symbols = load_tokenizer(work / "prepared" / "tokenizer.model").vocabulary()
    lines = [" ".join(symbols[int(id)] for id in line.split()) for line in (folder / "ids").read_text().splitlines()]
    (folder / "test").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return spent, detokenized(folder / "test")


CONTENDERS: dict[str, tuple[str, Callable[[Cell, int, Path], tuple[float, list[str]]]]] = {
    "nmt": ("", nmt_minutes),
    "nmt laptop": ("", nmt_laptop),
    "marian": ("marian", marian),
    "transformers": ("transformers", transformers),
}


def race_cell(cell: Cell, core: int, python: Path) -> None:
    cell.folder.mkdir(parents=True, exist_ok=True)
    seconds, hypotheses = CONTENDERS[cell.contender][1](cell, core, python)
    reference = cell.race.corpus / f"{cell.race.pairs[2]}.{cell.race.languages[1]}"
    references = [reference.read_text(encoding="utf-8").splitlines()]
    scores = {metric.__class__.__name__: metric.corpus_score(hypotheses, references).score
              for metric in (sacrebleu.BLEU(), sacrebleu.CHRF())}  # fmt: skip
    (cell.folder / "result.json").write_text(json.dumps({"seconds": round(seconds, 1), **scores}))


def work_on(cells: Iterator[Cell], lock: threading.Lock, core: int, pythons: dict[str, Path]) -> None:
    """Race cells on a core until none is left."""
    while True:
        with lock:
            cell = next(cells, None)
        if cell is None:
            return
        race_cell(cell, core, pythons[CONTENDERS[cell.contender][0]])
        print(f"{cell.contender} {cell.minutes:g} {cell.seed}: {result(cell)}", file=sys.stderr, flush=True)


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
            results = [found for seed in seeds if (found := result(Cell(race, contender, limit, seed)))]
            bleu, chrf = ([found[metric] for found in results] for metric in ("BLEU", "CHRF"))
            spread = f" ±{(max(bleu) - min(bleu)) / 2:.1f}" if len(bleu) > 1 else ""
            texts.append(f"{mean(bleu):.1f}{spread}, {mean(chrf):.1f}" if bleu else "")
        rows.append(f"| {contender} | " + " | ".join(texts) + " |")
    return "\n".join(rows)


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
    options = parser.parse_args()
    race = Race(options.corpus, options.cache, options.pairs, options.languages, options.vocabulary)
    race.work.mkdir(parents=True, exist_ok=True)
    prepare(race.work, nmt_corpus(race))
    pythons = {"": Path(sys.executable)}
    for name in {CONTENDERS[contender][0] for contender in options.only} - {""}:
        pythons[name], trouble = environment(options.cache.absolute(), name)
        if trouble:
            sys.exit(f"{name} {trouble}")
    every = (Cell(race, *setting) for setting in product(options.only, options.minutes, options.seeds))
    cells, lock = iter([cell for cell in every if not result(cell)]), threading.Lock()
    with ThreadPoolExecutor(len(options.cores)) as pool:
        for racing in [pool.submit(work_on, cells, lock, core, pythons) for core in options.cores]:
            racing.result()
    print(table(race, options.only, options.minutes, options.seeds))


if __name__ == "__main__":
    main()
