"""What exact training costs: trainer.reduction=exact beside fast.

    OMP_NUM_THREADS=1 python benchmarks/exactness.py [small|base] [ROUNDS] [PROCESSES...]

Two trainings on the same generated batches take turns, a window of some updates of eight micro-batches each. With
trainer.reduction=fast, PyTorch accumulates the gradients and its backend adds those of the processes. Prints medians
over windows of the seconds per update and of the ratio to fast, and the highest peak memory of a process.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from train import GPU, SIZES, TOKENS, peak_memory, turn, write_corpus

from nmt.commands import compose
from nmt.training import TranslationModule, train

CONTENDERS = ("exact", "fast")
UPDATES = 5
"""Updates in a window."""


def wait_for_turn(start: float) -> int:
    """End a window on all processes, and return the number of updates in the next one."""
    if GPU:
        torch.cuda.synchronize()
    seconds, words, peaks = time.perf_counter() - start, [""], [peak_memory()]
    if dist.is_initialized():
        peaks *= dist.get_world_size()
        dist.all_gather_object(peaks, peaks[0])
    if not dist.is_initialized() or dist.get_rank() == 0:
        if start:
            print(json.dumps({"seconds": seconds, "peak": max(peaks)}), flush=True)
        words = [sys.stdin.readline()]
    if dist.is_initialized():
        dist.broadcast_object_list(words)
    if not words[0]:
        os._exit(0)
    return int(words[0])


def contend(contender: str, overrides: list[str]) -> None:
    left, start, step = 0, 0.0, TranslationModule.training_step

    def in_turn(module: TranslationModule, batch: Any, batch_index: int) -> torch.Tensor:
        nonlocal left, start
        # The memory check comes before the first update, without a batch of the loop.
        is_ready = module.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        if is_ready and batch_index % module.trainer.accumulate_grad_batches == 0:
            if left == 0:
                left = wait_for_turn(start)
                start = time.perf_counter()
            left -= 1
        return step(module, batch, batch_index)

    TranslationModule.training_step = in_turn  # type: ignore[method-assign]
    config = compose("train", [*overrides, f"trainer.reduction={contender}"])
    train(config, Console(quiet=True))


def compare(rounds: int, processes: int, folder: Path, overrides: list[str]) -> None:
    def start(contender: str) -> subprocess.Popen[str]:
        words = [
            *overrides,
            f"trainer.devices={processes}",
            f"run={folder / contender}-{processes}",
        ]
        command = [sys.executable, __file__, "contend", contender, *words]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    trainings = {contender: start(contender) for contender in CONTENDERS}
    windows = {
        contender: [turn(training, UPDATES)] for contender, training in trainings.items()
    }  # to warm up
    for number in range(rounds):
        for contender in CONTENDERS[:: 1 if number % 2 else -1]:
            windows[contender].append(turn(trainings[contender], UPDATES))
    for training in trainings.values():
        assert training.stdin
        training.stdin.close()
        training.wait()
    seconds = {
        name: [window["seconds"] / UPDATES for window in turns[1:]]
        for name, turns in windows.items()
    }
    ratios = [exact / fast for exact, fast in zip(*seconds.values(), strict=True)]
    for name in CONTENDERS:
        ratio = (
            f"{statistics.median(ratios):.3f} x ({min(ratios):.3f} to {max(ratios):.3f})"
            if name == "exact"
            else ""
        )
        peak = windows[name][-1]["peak"] / 1e9
        print(
            f"{processes} {name:6} {statistics.median(seconds[name]):7.3f} s/update  {peak:.2f} GB  {ratio}",
            flush=True,
        )


def main(size: str, rounds: int, processes: list[int]) -> None:
    model, vocabulary = SIZES[size]
    with tempfile.TemporaryDirectory() as name:
        options = [model, "batching.micro_batches=8", "validation.bleu_sentences=0"]
        overrides = [*write_corpus(Path(name), vocabulary), *options]
        device = torch.cuda.get_device_name() if GPU else f"{torch.get_num_threads()} threads"
        print(
            f"{model}, {TOKENS:,} tokens in 8 micro-batches, {rounds} windows of {UPDATES} updates, {device}",
            flush=True,
        )
        for number in processes:
            compare(rounds, number, Path(name), overrides)


if __name__ == "__main__":
    if sys.argv[1:2] == ["contend"]:
        contend(sys.argv[2], sys.argv[3:])
    else:
        main(
            (*sys.argv[1:2], "small")[0],
            int((*sys.argv[2:3], 9)[0]),
            [*map(int, sys.argv[3:])] or [1, 2, 4],
        )
