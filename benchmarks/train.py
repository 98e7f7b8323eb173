"""Measure how fast `nmt train` is: the whole command compared with plain loops over the same batches.

    python benchmarks/train.py [small|base] [ROUNDS] [PRECISION]

Three processes train in turn, for a window of some updates each, on generated sentences as long as those of WMT 2014
(benchmarks/lengths.py), with about 4,000 target tokens per micro-batch and update:

- nmt: `nmt train` with its Lightning loop, logs and progress line;
- loop: a bare loop over nmt's model, loss and optimizer, which shows what Lightning and the metrics cost;
- torch.nn.Transformer: a bare loop over torch's model, cross-entropy and Adam, as a reference.

With a precision, such as bf16-mixed, a fourth process runs `nmt train trainer.precision=PRECISION`.

The script prints medians over windows: target tokens/s without padding, the ratio to the reference, utilization (the
model's FLOP/s divided by those of the fastest matrix product in the same run), the share of padding, and each process's
peak memory. On a machine with a GPU, everything runs there, in bfloat16.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from lengths import LONGEST, text_like_lengths
from lightning.fabric.utilities import move_data_to_device
from torch import Tensor, nn

from nmt.config import PAD, BatchingConfig, ModelConfig
from nmt.data import Batch, BatchPlanner, PreparedSplit
from nmt.model import training_flops

SIZES = {
    "small": ("model=small", 8_000),
    "base": ("model=base", 32_000),
    "big": ("model=big", 37_000),
}
GPU = torch.cuda.is_available()
TOKENS = 25_000 if GPU else 4_000
PAIRS = 200_000
SHORTEST_WINDOW = 10.0
"""Seconds."""
WARM_UP = 4
"""Updates."""
DEVICE = torch.device("cuda" if GPU else "cpu")


class Turns:
    """A contender's side of the taking of turns: it waits for its window, and says what it did in it."""

    def __init__(self) -> None:
        self.left = 0
        self.start = 0.0

    def before_update(self) -> None:
        if self.left:
            self.left -= 1
            return
        if GPU:
            torch.cuda.synchronize()
        if self.start:
            print(
                json.dumps({"seconds": time.perf_counter() - self.start, "peak": peak_memory()}),
                flush=True,
            )
        words = sys.stdin.readline().split()
        if not words:
            os._exit(0)
        self.left, self.start = int(words[0]) - 1, time.perf_counter()


def peak_memory() -> int:
    """Bytes of the processor's memory, or of the GPU's."""
    if GPU:
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def autocast():
    return torch.autocast("cuda", torch.bfloat16) if GPU else nullcontext()


def batches(folder: Path) -> Iterator[Batch]:
    split = PreparedSplit(folder / "prepared" / "train")
    planner = BatchPlanner(
        split.source_lengths, split.target_lengths, BatchingConfig(TOKENS, 1), seed=1
    )
    number = 0
    while True:
        (planned,) = planner.update(number)
        yield move_data_to_device(
            split.batch(planned.indices)._replace(update=number, size=planned.size), DEVICE
        )
        number += 1


class PlainTransformer(nn.Module):
    """torch.nn.Transformer with tied embeddings and sinusoids, as its tutorial would have it."""

    def __init__(self, c: ModelConfig, vocabulary: int) -> None:
        super().__init__()
        self.width = c.d_model
        self.embedding = nn.Embedding(vocabulary, c.d_model, padding_idx=PAD)
        self.dropout = nn.Dropout(c.dropout)
        self.transformer = nn.Transformer(
            c.d_model,
            c.heads,
            c.encoder_layers,
            c.decoder_layers,
            c.d_ff,
            c.dropout,
            batch_first=True,
        )
        self.output = nn.Linear(c.d_model, vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        angles = torch.arange(300)[:, None] / 10000 ** (torch.arange(0, c.d_model, 2) / c.d_model)
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), -1).flatten(1))

    def embed(self, tokens: Tensor) -> Tensor:
        embedded = (
            self.embedding(tokens) * math.sqrt(self.width) + self.positions[: tokens.shape[1]]
        )
        return self.dropout(embedded)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == PAD
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(
                target.shape[1], device=target.device
            ),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.output(hidden)


def train_plainly(folder: Path, config: ModelConfig, vocabulary: int) -> None:
    model = PlainTransformer(config, vocabulary).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)

    def update(batch: Batch) -> None:
        with autocast():
            logits = model(batch.source, batch.target_in)
            loss = criterion(logits.flatten(0, 1), batch.target_out.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    take_turns(folder, update)


def train_in_a_loop(folder: Path, config: ModelConfig, vocabulary: int) -> None:
    from nmt.config import OptimConfig
    from nmt.kernels import forget_old_kernels, prepare
    from nmt.training.module import TranslationModule, dropout_seed

    prepare()
    forget_old_kernels()
    module = TranslationModule(config, OptimConfig(), vocabulary, seed=1).to(DEVICE)
    optimizer = torch.optim.Adam(
        module.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
    )

    def update(batch: Batch) -> None:
        torch.manual_seed(dropout_seed(1, batch.update, batch.micro_batch))
        with autocast():
            loss, _ = module.losses(batch)
        (loss / batch.size.target_tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    take_turns(folder, update)


def take_turns(folder: Path, update: Callable[[Batch], None]) -> None:
    turns = Turns()
    for batch in batches(folder):
        turns.before_update()
        update(batch)


def train_with_nmt(folder: Path, overrides: list[str]) -> None:
    """`nmt train`, but that its batches wait for their turn."""
    from nmt import cli
    from nmt.training import TranslationModule

    turns, training_step = Turns(), TranslationModule.training_step

    def in_turn(module: TranslationModule, batch: Batch, batch_index: int) -> Tensor:
        # The memory check comes before the first update, without a batch of the loop.
        if module.trainer.fit_loop.epoch_loop.batch_progress.current.ready:
            turns.before_update()
        return training_step(module, batch, batch_index)

    TranslationModule.training_step = in_turn  # type: ignore[method-assign]
    sys.argv = ["nmt", "train", *overrides]
    cli.main()


def write_corpus(
    folder: Path,
    vocabulary: int,
    tokens: int = TOKENS,
    pairs: int = PAIRS,
    longest: int = LONGEST + 1,
) -> list[str]:
    """A prepared corpus of random tokens, and the overrides that train on it.

    `tokens` is the size of an update. No side of a pair has more than `longest` tokens.
    """
    import pyarrow as pa

    from nmt.commands import compose
    from nmt.data import IDS_SCHEMA
    from nmt.preparation import arrow_writer, preprocess

    text, prepared = folder / "text", folder / "prepared"
    for split, size in (("train", vocabulary // 4), ("valid", 20)):
        for language in ("en", "de"):
            letters = np.random.default_rng([size, ord(language[0])]).choice(
                list("abcdefghijklmnopqrstuvwxyz "), size=(size, 60)
            )
            Path(f"{text}.{split}.{language}").write_text(
                "".join("".join(line) + "\n" for line in letters)
            )
    overrides = [
        *("data=files", f"data.train={text}.train", f"data.valid={text}.valid", "data.test_size=0"),
        *(
            "tokenizer=bpe4k",
            f"tokenizer.vocabulary_size={vocabulary}",
            f"prepared={prepared}",
            f"run={folder / 'run'}",
        ),
    ]
    preprocess(compose("preprocess", overrides), lambda words: None)
    # The tokenizer stays; in the place of its sentences come many, of random tokens.
    random, columns = np.random.default_rng(1), {"line": np.arange(1, pairs + 1)}
    for side, drawn in zip(("source", "target"), text_like_lengths(pairs), strict=True):
        lengths = np.minimum(drawn, longest)
        ids = random.integers(4, vocabulary, size=int(lengths.sum()) - pairs, dtype=np.int32)
        columns[side] = np.split(ids, np.cumsum(lengths - 1)[:-1])
        columns[f"{side}_length"] = lengths.astype(np.int32)
    for file in (prepared / "train").glob("*.arrow"):
        with arrow_writer(file, IDS_SCHEMA) as write:
            write(pa.record_batch([columns[name] for name in IDS_SCHEMA.names], schema=IDS_SCHEMA))
    manifest = json.loads((prepared / "manifest.json").read_text())
    manifest["counts"]["train"]["kept"] = pairs
    (prepared / "manifest.json").write_text(json.dumps(manifest))
    assert manifest["vocabulary_size"] == vocabulary
    return [
        *overrides,
        *(
            f"batching.tokens_per_update={tokens}",
            "batching.micro_batches=1",
            "validation.every_steps=1000000",
        ),
        *("checkpoints.every_minutes=null", "trainer.log_every_n_steps=10"),
        *(
            ["trainer.precision=bf16-mixed"]
            if GPU
            else ["trainer.precision=32-true", "trainer.accelerator=cpu"]
        ),
    ]


def start(contender: str, folder: Path, size: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, size, contender, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def turn(process: subprocess.Popen[str], updates: int) -> dict[str, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{updates}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def contend(contender: str, folder: Path, size: str) -> None:
    from nmt.commands import compose

    model, vocabulary = SIZES[size]
    overrides = [*json.loads((folder / "overrides.json").read_text()), model]
    program, _, precision = contender.partition(" ")
    if program == "nmt":
        chosen = (
            [f"trainer.precision={precision}", f"run={folder / precision}"] if precision else []
        )
        train_with_nmt(folder, [*overrides, *chosen])
        return
    config = compose("train", overrides).model
    {"loop": train_in_a_loop, "torch.nn.Transformer": train_plainly}[contender](
        folder, config, vocabulary
    )


def main(size: str, rounds: int, precision: str | None) -> None:
    from nmt.commands import compose
    from nmt.training import peak_flops_per_second

    model, vocabulary = SIZES[size]
    contenders = [
        *(["nmt", f"nmt {precision}"] if precision else ["nmt"]),
        "loop",
        "torch.nn.Transformer",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        overrides = write_corpus(folder, vocabulary)
        (folder / "overrides.json").write_text(json.dumps(overrides))
        split = PreparedSplit(folder / "prepared" / "train")
        planner = BatchPlanner(
            split.source_lengths, split.target_lengths, BatchingConfig(TOKENS, 1), seed=1
        )
        config = compose("train", [*overrides, model]).model
        processes = {contender: start(contender, folder, size) for contender in contenders}
        windows = {contender: turn(processes[contender], WARM_UP) for contender in contenders}
        updates = max(2, math.ceil(SHORTEST_WINDOW / windows["loop"]["seconds"] * WARM_UP))
        rates: dict[str, list[float]] = {contender: [] for contender in contenders}
        peaks, done = [], WARM_UP
        for _ in range(rounds):
            peaks.append(peak_flops_per_second(DEVICE, torch.bfloat16 if GPU else torch.float32))
            sizes = [planner.update(number)[0].size for number in range(done, done + updates)]
            done += updates
            for contender in contenders:
                windows[contender] = turn(processes[contender], updates)
                rates[contender].append(
                    sum(each.target_tokens for each in sizes) / windows[contender]["seconds"]
                )
        for process in processes.values():
            process.kill()
            process.wait()
    total = sum(sizes[1:], start=sizes[0])
    flops_per_token = training_flops(config, vocabulary, total[:2], total[3:]) / total.target_tokens
    peak = statistics.median(peaks)
    device = torch.cuda.get_device_name() if GPU else f"{torch.get_num_threads()} threads"
    print(
        f"{model}, vocabulary {vocabulary:,}, {TOKENS:,} tokens a micro-batch, {rounds} windows of {updates} updates, "
        f"{device}; padding {total.padding:.1%}; matrix products reach {peak / 1e9:,.0f} GFLOP/s"
    )
    for contender in contenders:
        ratios = [
            own / other for own, other in zip(rates[contender], rates[contenders[-1]], strict=True)
        ]
        rate = statistics.median(rates[contender])
        print(
            f"{contender:22} {rate:10,.0f} tokens/s  {statistics.median(ratios):5.2f} x  "
            f"{rate * flops_per_token / 1e9:8,.0f} GFLOP/s  MFU {rate * flops_per_token / peak:4.0%}  "
            f"peak memory {windows[contender]['peak'] / 1e9:5.2f} GB"
        )
    loop = [own / other for own, other in zip(rates["nmt"], rates["loop"], strict=True)]
    print(f"nmt train is at {statistics.median(loop):.3f} of the bare loop over its own model")
    if precision:
        ratios = [
            own / other for own, other in zip(rates[f"nmt {precision}"], rates["nmt"], strict=True)
        ]
        print(
            f"with trainer.precision={precision} it is at {statistics.median(ratios):.3f} of itself"
        )


if __name__ == "__main__":
    if len(sys.argv) == 4 and not sys.argv[2].isdigit():
        contend(sys.argv[2], Path(sys.argv[3]), sys.argv[1])
    else:
        main((*sys.argv[1:2], "small")[0], int((*sys.argv[2:3], 7)[0]), (*sys.argv[3:4], None)[0])
