"""Train one tiny run under random schedules of kills and device counts; all must end with the same bytes.

    OMP_NUM_THREADS=1 python benchmarks/schedules.py [SCHEDULES]

There are SCHEDULES (20) schedules. Each except the first kills or stops the run once or twice. All
use Muon, bf16-mixed, two sources, noise and BPE-dropout.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nmt.files import sha256
from nmt.training import read_metrics

NOISE = "noise: {upper: 0.3, bpe_dropout: 0.3}"
CORPUS = [
    "data=files",
    "data.name=toy",
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=300",
    "workers=1",
]
TRAINING = [
    *(
        "model=tiny",
        "model.d_model=16",
        "model.d_ff=32",
        "model.heads=2",
        "optim.optimizer=muon",
        "optim.warmup=20",
    ),
    *("trainer.precision=bf16-mixed", "trainer.accelerator=cpu", "trainer.max_steps=60"),
    *(
        "batching.tokens_per_update=240",
        "batching.micro_batches=4",
        "trainer.log_every_n_steps=1",
        "logger=csv",
    ),
    *("checkpoints.every_steps=10", "checkpoints.average=all", "validation.bleu_sentences=0"),
]


def write_text(folder: Path, draw: random.Random) -> None:
    for split, lines in (("train", 600), ("valid", 20), ("other", 300)):
        pairs = [
            draw.choices(["ka", "lo", "mi", "nu", "pe", "ri", "so"], k=draw.randint(2, 9))
            for _ in range(lines)
        ]
        for language, step in (("en", 1), ("de", -1)):
            text = "".join(f"{' '.join(pair[::step])}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def train(run: Path, devices: int, stop: signal.Signals | None = None, update: int = 0) -> int:
    """Train until the end, or send the signal after an update; return the number of updates that were reported."""
    command = [
        "nmt",
        "train",
        str(run.with_name("prepared")),
        *TRAINING,
        f"trainer.devices={devices}",
        f"run={run}",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", *command], stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        while (
            stop
            and process.poll() is None
            and int((read_metrics(run, 1) or [{"step": "0"}])[0]["step"]) < update
        ):
            time.sleep(0.005)
        if stop:
            os.killpg(process.pid, stop) if stop == signal.SIGKILL else process.send_signal(stop)
        errors = process.communicate()[1].decode()
    assert process.returncode == {None: 0, signal.SIGKILL: -9, signal.SIGTERM: 143}[stop], errors
    return max(int(row["step"]) for row in read_metrics(run))


def schedule(run: Path) -> tuple[str, str]:
    """Train run 0 without interruption, and any other under a random schedule; return the schedule and the SHA-256."""
    number, parts, draw = int(run.name), list[str](), random.Random(int(run.name))
    for start in (1, 31)[: draw.choice((1, 2)) if number else 0]:
        devices, stop = draw.choice((1, 2, 4)), draw.choice((signal.SIGKILL, signal.SIGTERM))
        reached = train(run, devices, stop, draw.randrange(start, start + 15))
        parts.append(f"{devices}, {stop.name} after {reached}")
    devices = draw.choice((1, 2, 4)) if number else 1
    train(run, devices)
    return "; ".join([*parts, f"{devices} to the end"]), sha256(run / "model" / "model.safetensors")


def main(schedules: int) -> None:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        folder, digests = Path(name), set[str]()
        write_text(folder, random.Random(1))
        sources = f"data.sources=[{{train: {folder}/train, {NOISE}}}, {{train: {folder}/other, share: 0.3}}]"
        places = {"data.valid": "valid", "data.test": "valid", "prepared": "prepared"}
        words = [*CORPUS, sources, *(f"{key}={folder}/{place}" for key, place in places.items())]
        subprocess.run(
            [sys.executable, "-m", "nmt", "preprocess", *words],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        print("| processes, signal after update | SHA-256 |\n|---|---|")
        for parts, digest in pool.map(
            schedule, [folder / str(number) for number in range(schedules)]
        ):
            digests.add(digest)
            print(f"| {parts} | `{digest[:16]}` |", flush=True)
        sys.exit(len(digests) > 1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
