"""Whole commands on a GPU: equal bits, the price of Lightning, and the quickstart to its BLEU."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from gpu_machine import seconds_of
from gpu_report import Report
from gpu_settings import Settings
from gpu_toy import prepare_toy
from gpu_training import Variant, forget_everything, looping, planner_of, updates_of
from train import write_corpus

from nmt.commands import COMMANDS, compose
from nmt.data import PreparedSplit
from nmt.training import TranslationModule, read_metrics, synchronize

QUICKSTART_UPDATES = 3_200
WARM_UPDATES = 20
BLEU, BLEU_TOLERANCE = 35.9, 0.8
LOSS, LOSS_TOLERANCE = 2.72, 0.02
"""From CPUs; the tolerances cover seeds."""


def nmt(*words: str) -> list[str]:
    return [sys.executable, "-m", "nmt", *words]


def log_command(command: list[str]) -> None:
    """Run a command, whose output goes to the log."""
    print(" ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)


def weights_hash(run: Path) -> str:
    return hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()


def place(settings: Settings) -> str:
    return f"trainer.accelerator={'cpu' if settings.is_dry else 'cuda'}"


def start_command(command: list[str]) -> "subprocess.Popen[bytes]":
    """Start a command, whose output goes to the log."""
    # The worker's own standard input has the names of the next steps.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def determinism_options(settings: Settings, folder: Path) -> list[str]:
    return [
        *prepare_toy(folder),
        place(settings),
        f"trainer.precision={settings.precision}",
        "validation.bleu_sentences=0",
        "checkpoints.keep=1",
    ]


def determinism(settings: Settings, report: Report) -> None:
    """Two straight runs and one that was resumed at half have the same bits."""
    folder = Path(settings.work) / "determinism"
    common = determinism_options(settings, folder)
    updates = settings.sizes.toy_updates

    def command(run: str, last: int) -> list[str]:
        return nmt("train", *common, f"run={folder / run}", f"trainer.max_steps={last}")

    # At the same time, so that other work on the GPU is part of the test.
    firsts = {"one": updates, "two": updates, "resumed": updates // 2}
    processes = {}
    for run, last in firsts.items():
        processes[run] = start_command(command(run, last))
    failed = [run for run, process in processes.items() if process.wait()]
    if failed:
        raise RuntimeError(f"nmt train failed in the runs {', '.join(failed)}; see the log")
    log_command(command("resumed", updates))
    hashes = {run: weights_hash(folder / run) for run in firsts}
    report.check(
        f"{updates} updates twice",
        hashes["one"] == hashes["two"],
        f"{hashes['one'][:8]} and {hashes['two'][:8]}",
        "equal SHA-256",
        hashes=hashes,
    )
    report.check(
        f"{updates // 2} + {updates - updates // 2} updates, resumed",
        hashes["one"] == hashes["resumed"],
        f"{hashes['one'][:8]} and {hashes['resumed'][:8]}",
        "equal SHA-256",
    )


class Enough(BaseException):
    """Ends a training when its time has been taken. Not an Exception, which nmt would explain."""


@contextmanager
def stopwatch(first: int, last: int) -> Iterator[dict[int, float]]:
    """The times at which updates `first` and `last` of `nmt train` begin; the latter ends it."""
    step = TranslationModule.training_step
    times = dict[int, float]()

    def training_step(module: TranslationModule, batch: Any, batch_index: int) -> Any:
        # The memory check makes a step before the first update.
        if module.trainer.fit_loop.epoch_loop.batch_progress.current.ready:
            if batch.update in (first, last):
                synchronize(module.device)
                times[batch.update] = time.perf_counter()
            if batch.update == last:
                raise Enough
        return step(module, batch, batch_index)

    TranslationModule.training_step = training_step  # type: ignore[method-assign]
    try:
        yield times
    finally:
        TranslationModule.training_step = step  # type: ignore[method-assign]


def train_command(settings: Settings, report: Report) -> None:
    """`nmt train` against a bare loop over the same batches, one after another."""
    sizes, device = settings.sizes, settings.device
    folder = Path(settings.work) / "train_command"
    folder.mkdir()
    overrides = write_corpus(folder, sizes.vocabulary, sizes.tokens, sizes.pairs, sizes.longest)
    options = [
        *(word for word in overrides if not word.startswith("trainer.")),
        *sizes.models["base"],
        place(settings),
        f"trainer.precision={settings.precision}",
        "trainer.log_every_n_steps=50",
        "validation.bleu_sentences=0",
    ]
    first = sizes.warm_updates
    last = first + sizes.timed_updates
    split = PreparedSplit(folder / "prepared" / "train")
    is_compiled = not settings.is_dry
    variant = Variant("loop", "base", is_compiled)

    def loop_seconds() -> float:
        planner = planner_of(split, sizes.tokens)
        updates = list(islice(updates_of(split, planner, device), last))
        with looping(settings, variant) as loop:
            if is_compiled:
                loop.compile(planner)
            seconds_of(device, lambda: loop.updates(updates[:first]))
            return seconds_of(device, lambda: loop.updates(updates[first:]))

    def command_seconds() -> float:
        with stopwatch(first, last) as times:
            try:
                COMMANDS["train"].run(compose("train", options))
            except Enough:
                pass
            finally:
                forget_everything(device)
        return times[last] - times[first]

    loop = loop_seconds()
    updates = sizes.timed_updates
    report.note("bare loop, base", f"{loop / updates * 1e3:.1f} ms per update", seconds=loop)
    command = command_seconds()
    report.note("nmt train, base", f"{command / updates * 1e3:.1f} ms per update", seconds=command)
    ratio = loop / command
    report.check_full_size(
        "nmt train, as a share of the loop's speed",
        ratio >= 0.95,
        f"{ratio:.3f}",
        ">= 0.95",
        ratio=ratio,
    )


def quickstart_options(settings: Settings, run: Path) -> list[str]:
    """The options of the quickstart or, in a dry run without its corpus, of something like it."""
    if settings.quickstart:
        options = ["experiment=quickstart", f"prepared={settings.quickstart}"]
    else:
        folder = Path(settings.work) / f"{run.name}-corpus"
        options = prepare_toy(folder)
    if settings.is_dry:
        options += ["trainer.max_steps=20", "checkpoints.every_steps=5"]
        options += ["validation.every_steps=10", "validation.bleu_sentences=4"]
    return [*options, place(settings), f"run={run}"]


def warm_up_toy(settings: Settings) -> None:
    """Fill the compiler's cache with the layers that `nmt train` compiles in `determinism`."""
    folder = Path(settings.work) / "warm-up-toy"
    options = [*determinism_options(settings, folder), f"run={folder / 'run'}"]
    log_command(nmt("train", *options, f"trainer.max_steps={WARM_UPDATES}", "logger=csv"))


def skips_quickstart(settings: Settings, report: Report) -> bool:
    if settings.quickstart or settings.is_dry:
        return False
    report.skip("quickstart", "pass --quickstart with the folder of its prepared corpus")
    return True


def quickstart(settings: Settings, report: Report) -> None:
    """Train, translate the test set and score it, as a user would."""
    if skips_quickstart(settings, report):
        return
    run = Path(settings.work) / "quickstart"
    options = quickstart_options(settings, run)
    start = time.perf_counter()
    log_command(nmt("train", *options))
    seconds = time.perf_counter() - start
    report.figure("quickstart: training", seconds, "s")
    validated = [row for row in read_metrics(run) if row["valid_loss"]]
    loss = float(validated[-1]["valid_loss"])
    report.check_full_size(
        "quickstart: validation loss",
        abs(loss - LOSS) <= LOSS_TOLERANCE,
        f"{loss:.3f}",
        f"{LOSS} +- {LOSS_TOLERANCE}",
        loss=loss,
    )
    digest = weights_hash(run)
    report.note("quickstart: SHA-256 of the model", digest[:16], sha256=digest)
    words = [word for word in options if word.startswith("prepared=")]
    corpus = Path(words[0].removeprefix("prepared="))
    # As in recipes/quickstart/run.sh.
    start = time.perf_counter()
    command = nmt("translate", f"run={run}", "protect=none", f"input={corpus / 'test.en'}")
    device = "cpu" if settings.is_dry else "cuda"
    log_command([*command, "engine=torch", f"device={device}", f"output={run / 'test.de'}"])
    report.note("quickstart: translation", f"{time.perf_counter() - start:.1f} s")
    score = nmt("score", f"hypothesis={run / 'test.de'}", f"reference={corpus / 'test.de'}")
    words = ["metrics=[bleu]", "format=json"]
    printed = subprocess.check_output([*score, *words], stdin=subprocess.DEVNULL, text=True)
    (scored,) = json.loads(printed)
    bleu = float(scored["value"])
    report.check_full_size(
        "quickstart: BLEU",
        abs(bleu - BLEU) <= BLEU_TOLERANCE,
        f"{bleu:.1f}",
        f"{BLEU} +- {BLEU_TOLERANCE}",
        bleu=bleu,
    )


def quickstart_resumed(settings: Settings, report: Report) -> None:
    """Kill the quickstart at half and resume it: the same bits as without."""
    if skips_quickstart(settings, report):
        return
    straight = Path(settings.work) / "quickstart"
    if not (straight / "model" / "model.safetensors").exists():
        report.skip("quickstart, killed at half", "the run without interruption is missing")
        return
    run = Path(settings.work) / "resumed"
    options = quickstart_options(settings, run)
    half = 10 if settings.is_dry else QUICKSTART_UPDATES // 2
    checkpoint = run / "checkpoints" / f"step={half:08d}.ckpt"
    process = start_command(nmt("train", *options))
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.wait()
    log_command(nmt("train", *options))
    hashes = [weights_hash(folder) for folder in (straight, run)]
    report.check(
        "quickstart, killed at half and resumed",
        hashes[0] == hashes[1],
        " and ".join(digest[:8] for digest in hashes),
        "equal SHA-256",
        hashes=hashes,
    )
