"""Training speed of base and big in bare loops: throughput, memory and kernels of an update."""

import gc
import gzip
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from gpu_machine import seconds_of
from gpu_report import Report, in_words
from gpu_settings import Settings
from lengths import text_like_lengths
from lightning.fabric.utilities import move_data_to_device
from torch.profiler import ProfilerActivity

from nmt import kernels
from nmt.commands import compose
from nmt.config import BatchingConfig
from nmt.data import IDS_SCHEMA, Batch, BatchPlanner, PreparedSplit, UpdateSize
from nmt.model import Transformer, training_flops
from nmt.preparation import arrow_writer
from nmt.training import loss as training_loss, summed_losses, synchronize
from nmt.training.warm_up import kernel_identity, warm_up_batches

PEAK_FLOPS = 989e12
"""The dense bfloat16 peak of an H100 or H200, to which all utilizations refer."""
DEFAULT_CHUNKS = dict(training_loss.CHUNK_LOGITS)
CPU_CHUNK = DEFAULT_CHUNKS["cpu"]
LARGE_CHUNK = training_loss.CHUNK_LOGITS_ELSEWHERE
SMOOTHING = 0.1
PROFILED_UPDATES = 3
MATRIX_PRODUCT = re.compile(r"gemm|nvjet|xmma|cutlass|cublas|aten::mm|aten::addmm", re.IGNORECASE)
ATTENTION = re.compile(r"fmha|flash|attention", re.IGNORECASE)
COMPILED_ONCE = "a dry run compiles only one variant"
LEAST_BUSY = {"base": 0.8, "big": 0.95}
"""Shares of the time in which the GPU computes; below them, it waits for Python."""
TRACE_BYTES = 15_000_000

Update = list[Batch]
"""The micro-batches of an update, on the device."""


@dataclass(frozen=True)
class Variant:
    """A way to compute the updates of a model."""

    what: str
    model: str
    is_compiled: bool = False
    chunk_logits: int = LARGE_CHUNK
    micro_batches: int = 1
    precision: str = "bfloat16"
    """bfloat16 (mixed), float32 or TF32."""
    is_deterministic: bool = True
    share: float = 1.0
    """The share of the usual number of updates to measure: less for slow variants."""
    scale: int = 1
    """A factor for the number of tokens per update."""


@cache
def random_split(settings: Settings) -> PreparedSplit:
    """Pairs of random tokens, as long as those of WMT 2014."""
    # Several processes do this at the same time.
    folder = Path(settings.work) / f"random-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = settings.sizes
    random = np.random.default_rng(1)
    columns: dict[str, Any] = {"line": np.arange(1, sizes.pairs + 1)}
    sides = zip(("source", "target"), text_like_lengths(sizes.pairs), strict=True)
    for side, drawn in sides:
        lengths = np.minimum(drawn, sizes.longest)
        ids = random.integers(4, sizes.vocabulary, size=int(lengths.sum()), dtype=np.int32)
        # The lengths count an end symbol, which the columns leave out.
        offsets = np.concatenate(([0], np.cumsum(lengths - 1))).astype(np.int32)
        columns[side] = pa.ListArray.from_arrays(offsets, ids[: offsets[-1]])
        columns[f"{side}_length"] = lengths.astype(np.int32)
    with arrow_writer(folder / "pairs.arrow", IDS_SCHEMA) as write:
        names = IDS_SCHEMA.names
        write(pa.record_batch([columns[name] for name in names], schema=IDS_SCHEMA))
    return PreparedSplit(folder)


def planner_of(split: PreparedSplit, tokens: int, micro_batches: int = 1) -> BatchPlanner:
    """The planner of `nmt train` with seed 1."""
    batching = BatchingConfig(tokens, micro_batches)
    return BatchPlanner(split.source_lengths, split.target_lengths, batching, seed=1)


def updates_of(
    split: PreparedSplit,
    planner: BatchPlanner,
    device: torch.device,
) -> Iterator[Update]:
    number = 0
    while True:
        update = []
        for planned in planner.update(number):
            batch = split.batch(planned.indices)
            batch = batch._replace(
                update=number,
                micro_batch=planned.micro_batch,
                size=planned.size,
            )
            update.append(move_data_to_device(batch, device))
        yield update
        number += 1


# Several variants of a model compute the same updates.
@lru_cache(maxsize=1)
def random_updates(
    settings: Settings,
    tokens: int,
    micro_batches: int,
    number: int,
) -> list[Update]:
    split = random_split(settings)
    planner = planner_of(split, tokens, micro_batches)
    return list(islice(updates_of(split, planner, settings.device), number))


class Loop:
    """The least that training needs: nmt's model and loss, and a fused Adam."""

    def __init__(self, settings: Settings, variant: Variant) -> None:
        self.device = settings.device
        self.variant = variant
        kernels.prepare()
        kernels.use_deterministic_kernels(variant.is_deterministic)
        training_loss.CHUNK_LOGITS[self.device.type] = variant.chunk_logits
        is_tf32 = variant.precision == "TF32"
        torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
        self.vocabulary = settings.sizes.vocabulary
        overrides = ["data=files", *settings.sizes.models[variant.model]]
        self.config = compose("train", [*overrides, f"trainer.precision={settings.precision}"])
        torch.manual_seed(1)
        self.model = Transformer(self.config.model, self.vocabulary).to(self.device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=1e-4,
            betas=(0.9, 0.98),
            eps=1e-9,
            fused=True,
        )

    def autocast(self) -> AbstractContextManager[Any]:
        # Most CPUs would take ten times as long in bfloat16.
        if self.variant.precision == "bfloat16" and self.device.type == "cuda":
            return torch.autocast(self.device.type, torch.bfloat16)
        return nullcontext()

    def seed(self, batch: Batch) -> None:
        """As in nmt's training step: torch.manual_seed would seed all devices."""
        number = 8 * batch.update + batch.micro_batch
        torch.default_generator.manual_seed(number)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(number)

    def update(self, batches: Update) -> None:
        for batch in batches:
            self.seed(batch)
            with self.autocast():
                loss, _ = summed_losses(self.model, batch, SMOOTHING)
            (loss / batch.size.target_tokens).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def updates(self, updates: list[Update]) -> None:
        for batches in updates:
            self.update(batches)

    def flops(self, size: UpdateSize) -> int:
        return training_flops(self.config.model, self.vocabulary, size[:2], size[3:])

    def compile(self, planner: BatchPlanner) -> None:
        """Compile as `nmt train` does, so that both use the same cached kernels."""
        identity = kernel_identity(self.config, self.vocabulary, planner, self.device)
        self.model.compiler = kernels.Compiler(identity)
        for batch in warm_up_batches(planner):
            with self.autocast():
                on_device = move_data_to_device(batch, self.device)
                loss, _ = summed_losses(self.model, on_device, SMOOTHING)
            loss.backward()
        self.optimizer.zero_grad()


def forget_everything(device: torch.device) -> None:
    """Free memory, and undo the settings that a variant made."""
    torch.compiler.reset()
    torch.set_float32_matmul_precision("highest")
    kernels.use_deterministic_kernels(False)
    training_loss.CHUNK_LOGITS.clear()
    training_loss.CHUNK_LOGITS.update(DEFAULT_CHUNKS)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


@contextmanager
def looping(settings: Settings, variant: Variant) -> Iterator[Loop]:
    try:
        yield Loop(settings, variant)
    finally:
        forget_everything(settings.device)


def is_compiled_again(settings: Settings, variant: Variant) -> bool:
    """Compiling takes half of a dry run's time: once is enough to test it."""
    is_first = variant.model == "base" and variant.micro_batches > 1
    return settings.is_dry and variant.is_compiled and not is_first


@dataclass
class Pace:
    tokens_per_second: float
    memory: float
    """GB."""


def measure(settings: Settings, report: Report, variant: Variant) -> Pace:
    """Report the speed of a variant, and its memory."""
    if is_compiled_again(settings, variant):
        report.skip(variant.what, COMPILED_ONCE)
        return Pace(0.0, 0.0)
    device, sizes = settings.device, settings.sizes
    tokens = sizes.tokens * variant.scale
    # A micro-batch must hold the longest sentence.
    micro_batches = min(variant.micro_batches, tokens // sizes.longest)
    warm = max(1, round(sizes.warm_updates * variant.share))
    timed = max(2, round(sizes.timed_updates * variant.share))
    updates = random_updates(settings, tokens, micro_batches, warm + timed)
    with looping(settings, variant) as loop:
        start = time.perf_counter()
        if variant.is_compiled:
            # These kernels serve smaller and larger micro-batches too, and are cached already.
            loop.compile(planner_of(random_split(settings), sizes.tokens))
            synchronize(device)
        compiling = time.perf_counter() - start
        loop.updates(updates[:warm])
        seconds = seconds_of(device, lambda: loop.updates(updates[warm:]))
        total = sum((batches[0].size for batches in updates[warm + 1 :]), updates[warm][0].size)
        flops = loop.flops(total)
    memory = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0
    rate = total.target_tokens / seconds
    utilization = flops / seconds / PEAK_FLOPS
    report.figure(
        variant.what,
        rate,
        "tokens/s",
        f"{seconds / timed * 1e3:.1f} ms, MFU {utilization:.1%}, {memory:.1f} GB",
        milliseconds=seconds / timed * 1e3,
        mfu=utilization,
        memory=memory,
        padding=total.padding,
    )
    if variant.is_compiled:
        report.note(f"{variant.what}: compiling", f"{compiling:.1f} s", seconds=compiling)
    return Pace(rate, memory)


def training(settings: Settings, report: Report, model: str) -> None:
    eager = Variant(f"{model}, eager", model)
    compiled = Variant(f"{model}, compiled", model, is_compiled=True)
    eight = Variant(f"{model}, eager, 8 micro-batches", model, micro_batches=8, share=0.3)
    slow = Variant(
        f"{model}, eager, float32",
        model,
        precision="float32",
        share=0.15,
    )
    free = Variant(
        f"{model}, eager, trainer.deterministic=false",
        model,
        is_deterministic=False,
    )
    measure(
        settings,
        report,
        replace(eager, what=f"{model}, eager, the CPU's chunks", chunk_logits=CPU_CHUNK),
    )
    pace = measure(settings, report, eager)
    if not settings.is_dry:
        report.figure(f"{model}, eager: memory", pace.memory, "GB")
    cost = measure(settings, report, free).tokens_per_second / pace.tokens_per_second - 1
    report.check_full_size(
        f"{model}: cost of determinism",
        cost < 0.03,
        f"{cost:.1%}",
        "< 3 %",
        cost=cost,
    )
    measure(settings, report, compiled)
    measure(settings, report, eight)
    measure(
        settings,
        report,
        replace(eight, what=f"{model}, compiled, 8 micro-batches", is_compiled=True),
    )
    measure(settings, report, slow)


def training_base(settings: Settings, report: Report) -> None:
    training(settings, report, "base")


def training_big(settings: Settings, report: Report) -> None:
    training(settings, report, "big")


def training_more(settings: Settings, report: Report) -> None:
    """Two settings that users may choose."""
    measure(settings, report, Variant("big, eager, TF32", "big", precision="TF32", share=0.2))
    large = Variant("big, compiled, 100,000 tokens", "big", is_compiled=True, scale=4, share=0.3)
    measure(settings, report, large)


@dataclass
class Profile:
    """What a device did during some updates; times in microseconds."""

    window: float
    busy: float
    kernels: int
    times: Counter[str]
    """By kernel."""

    def share(self, pattern: re.Pattern[str], but: re.Pattern[str]) -> float:
        chosen = 0.0
        for name, microseconds in self.times.items():
            if pattern.search(name) and not but.search(name):
                chosen += microseconds
        return chosen / max(sum(self.times.values()), 1e-9)


def read_trace(path: Path, categories: set[str]) -> Profile:
    """Sum up a trace that torch.profiler wrote, in Chrome's format."""
    events = [
        event
        for event in json.loads(path.read_text())["traceEvents"]
        if event.get("cat") in categories and "dur" in event
    ]
    events.sort(key=lambda event: event["ts"])
    times = Counter[str]()
    busy = 0.0
    end = first = events[0]["ts"] if events else 0.0
    for event in events:
        times[event["name"]] += event["dur"]
        stop = event["ts"] + event["dur"]
        # Kernels of several streams may overlap.
        busy += max(0.0, stop - max(end, event["ts"]))
        end = max(end, stop)
    return Profile(end - first, busy, len(events), times)


def profiled(settings: Settings, report: Report, variant: Variant) -> None:
    if is_compiled_again(settings, variant):
        report.skip(f"{variant.what}: profile", COMPILED_ONCE)
        return
    device, sizes = settings.device, settings.sizes
    activity = ProfilerActivity.CPU if settings.is_dry else ProfilerActivity.CUDA
    categories = {"cpu_op"} if settings.is_dry else {"kernel", "gpu_memcpy", "gpu_memset"}
    warm = max(1, sizes.warm_updates // 2)
    updates = random_updates(settings, sizes.tokens, 1, warm + PROFILED_UPDATES)
    trace = Path(settings.work) / "trace.json"
    with looping(settings, variant) as loop:
        if variant.is_compiled:
            loop.compile(planner_of(random_split(settings), sizes.tokens))
        seconds_of(device, lambda: loop.updates(updates[:warm]))
        with torch.profiler.profile(activities=[activity]) as profiler:
            seconds_of(device, lambda: loop.updates(updates[warm:]))
    profiler.export_chrome_trace(str(trace))
    profile = read_trace(trace, categories)
    busy = profile.busy / max(profile.window, 1e-9)
    report.check_full_size(
        f"{variant.what}: GPU busy",
        busy > LEAST_BUSY[variant.model],
        f"{busy:.1%}",
        f"> {LEAST_BUSY[variant.model]:.0%}",
        busy=busy,
    )
    kernels = profile.kernels / PROFILED_UPDATES
    report.figure(f"{variant.what}: kernels per update", kernels, "")
    products = profile.share(MATRIX_PRODUCT, but=ATTENTION)
    report.figure(f"{variant.what}: share of matrix products", products * 100, "%")
    total = sum(profile.times.values())
    for place, (name, microseconds) in enumerate(profile.times.most_common(10), 1):
        milliseconds = microseconds / 1000 / PROFILED_UPDATES
        words = f"{in_words(milliseconds, 'ms')} ({microseconds / total:.1%}): {name[:80]}"
        report.note(
            f"{variant.what}: kernel {place}", words, kernel=name, milliseconds=milliseconds
        )
    keep_trace(trace, Path(settings.out) / f"trace-{variant.model}.json.gz")


def keep_trace(trace: Path, target: Path) -> None:
    """Compress a trace, unless the result is too large to send around."""
    with trace.open("rb") as source, gzip.open(target, "wb", compresslevel=4) as output:
        shutil.copyfileobj(source, output)
    if target.stat().st_size > TRACE_BYTES:
        target.unlink()


def profile(settings: Settings, report: Report) -> None:
    """Which kernels take the time of an update, and whether the GPU waits for Python."""
    for model in ("big", "base"):
        for is_compiled in (False, True):
            kind = "compiled" if is_compiled else "eager"
            profiled(settings, report, Variant(f"{model}, {kind}", model, is_compiled))


def warm_up_compiler(settings: Settings, model: str) -> None:
    """Fill the compiler's cache with a model's layers."""
    tokens = settings.sizes.tokens
    updates = random_updates(settings, tokens, 1, settings.sizes.warm_updates)
    with looping(settings, Variant(model, model, is_compiled=True)) as loop:
        loop.compile(planner_of(random_split(settings), tokens))
        loop.updates(updates)
