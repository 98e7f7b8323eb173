"""Trials of batches before training: memory, micro-batches, precision, peak FLOP/s, and how long training will take."""

import gc
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from pathlib import Path

import torch
from lightning import LightningModule, Trainer
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch.callbacks import Callback
from rich.console import Console
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from nmt.config import BatchingConfig, ExperimentConfig, ModelConfig, build, require
from nmt.data import BatchPlanner, PreparedCorpus, PreparedSplit, accumulation, dummy_batch
from nmt.errors import enough_memory_or, is_out_of_memory
from nmt.files import duration
from nmt.hardware import available_memory
from nmt.kernels import has_fast_product, linear, product
from nmt.model import DecoderLayer
from nmt.training.module import TranslationModule
from nmt.training.run_folder import read_config
from nmt.training.trainer import make_trainer

PRECISIONS = {"bf16": torch.bfloat16, "16": torch.float16, "32": torch.float32, "64": torch.float64}
IDLE_ROUNDS, MAX_SECONDS = 3, 3.0
"""A measurement ends after so many rounds without a lower result, or so many seconds."""
HEADROOM = 1.25
"""A trial of max_tokens=auto is larger by this factor: a reserve for gradients in transit, and for fragmentation."""
TIMED_SECONDS = 3.0
WORTHWHILE_UPDATES = 100
"""The time of fewer updates is not estimated."""
LONG_SECONDS = 6 * 3600.0
"""For a training on a processor that takes longer, the report names a shorter one."""
LENGTH = 32
"""Tokens of a sentence in the layer that is measured for trainer.precision=auto."""
Shape = tuple[int, int, int]
"""Rows, source width and target width of a micro-batch."""


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished its work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def precision_dtype(precision: str | int | None) -> torch.dtype:
    """The type of matrix products for a precision flag of Trainer, such as 32-true or bf16-mixed."""
    return PRECISIONS[str(precision or 32).split("-")[0]]


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of the fastest of several square products; takes a fifth of a second, or more on a busy machine.

    On a processor products of float32 are tried too: where it has none of bfloat16, those take ten times as long, and
    what mixed precision leaves in float32 would be faster than the peak.
    """
    size = 1024 if device.type == "cpu" else 8192
    matrices = [torch.randn(size, size, device=device, dtype=dtype)]
    if device.type == "cpu" and dtype.itemsize < 4:
        matrices.append(matrices[0].float())
    products: list[tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = [(torch.mm, x) for x in matrices]
    products += [(product, x) for x in matrices if has_fast_product(x, x)]
    least, idle, end = inf, 0, time.monotonic() + MAX_SECONDS
    # Until several rounds were no faster, because other programs may disturb some.
    while idle < IDLE_ROUNDS and time.monotonic() < end:
        seconds = min(seconds_of(partial(multiply, x, x), device) for multiply, x in products * 2)
        idle = 0 if seconds < 0.98 * least else idle + 1
        least = min(least, seconds)
    return 2.0 * size**3 / least


def require_one_process(setting: str, instead: str) -> None:
    """NMTError where processes start together: what is tried out for `setting` could differ between them."""
    alone = int(os.environ.get("WORLD_SIZE", 1)) == 1
    require(alone, f"{setting} needs one process: start the run once with one, or pass {instead}")


def make_resident(module: TranslationModule, optimizer: Optimizer) -> None:
    """Allocate gradients and Adam's moments, which otherwise exist only from the second update on.

    From gradients of zero, Adam makes moments of zero and does not move; the first update then finds these moments.
    """
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if not optimizer.state:
        optimizer.step()
        for state in optimizer.state.values():
            state["step"].zero_()


@contextmanager
def spare_memory(module: TranslationModule) -> Iterator[None]:
    """Hold some unused memory within the block, as a reserve for threads, buffers, and gaps between tensors."""
    local = [x.to_local() if isinstance(x, DTensor) else x for x in module.parameters()]
    # 64 MiB, and 5 % of weights, gradients, and two moments.
    size = 2**26 + int(0.05 * 4 * sum(parameter.nbytes for parameter in local))
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        on_device = torch.empty(0 if module.device.type == "cpu" else size, dtype=torch.uint8, device=module.device)
        yield
        del on_device


def try_shapes(trainer: Trainer, module: TranslationModule, shapes: Iterable[Shape]) -> None:
    """A training step and its backward pass for micro-batches of these shapes, without an update."""
    sums = module.update_sums.clone()
    for shape in shapes:
        if trainer.accumulate_grad_batches == 1:
            module.zero_grad()  # as after every update; otherwise a micro-batch meets the gradients of another
        batch = move_data_to_device(dummy_batch(*shape), module.device)
        loss = trainer.strategy.training_step(batch, 0)
        trainer.strategy.backward(loss, None)  # type: ignore[arg-type]
        del loss
    module.update_sums.copy_(sums)


class BeforeTraining(Callback):
    """Tries the largest batches before the first update of this process, so that memory runs out at once or never.

    Then it times some batches, and reports how long all updates will take, without validation and saving.
    `max_seconds` is the time limit of this process.
    """

    def __init__(
        self,
        planner: BatchPlanner,
        batching: BatchingConfig,
        try_validation: Callable[[Trainer, TranslationModule], None],
        console: Console,
        max_seconds: float | None,
    ) -> None:
        self.planner, self.batching, self.try_validation = planner, batching, try_validation
        self.console, self.max_seconds = console, max_seconds

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Try and time batches; NMTError where memory runs out."""
        assert isinstance(pl_module, TranslationModule)
        tokens, micro_batches = self.batching.tokens_per_update, self.batching.micro_batches
        advice = (
            f"a micro-batch of {tokens // micro_batches:,} source and as many target tokens does not fit beside "
            f"weights, gradients and Adam's moments. Pass batching.micro_batches={2 * micro_batches} (smaller ones), "
            f"a lower batching.tokens_per_update={tokens}, or batching.max_tokens=auto"
        )
        with enough_memory_or(advice), spare_memory(pl_module):
            make_resident(pl_module, trainer.optimizers[0])
            try_shapes(trainer, pl_module, self.planner.largest_shapes())
            self.try_validation(trainer, pl_module)
        trainer.optimizers[0].zero_grad()
        if trainer.max_steps - trainer.global_step >= WORTHWHILE_UPDATES:
            self.estimate_time(trainer, pl_module)
            trainer.optimizers[0].zero_grad()

    def shapes_from(self, update: int) -> Iterator[Shape]:
        """Shapes of the micro-batches of this update and those after it."""
        for number in count(update):
            for batch in self.planner.update(number):
                source, target = (int(lengths[batch.indices].max()) for lengths in self.planner.lengths)
                yield len(batch.indices), source, target

    def estimate_time(self, trainer: Trainer, module: TranslationModule) -> None:
        """Print the time that the remaining updates will take."""
        left, shapes = trainer.max_steps - trainer.global_step, self.shapes_from(trainer.global_step)
        try_shapes(trainer, module, [next(shapes)])  # not timed: kernels and memory are made for it
        begin, seconds, made = time.monotonic(), 0.0, 0
        while not trainer.strategy.reduce_boolean_decision(seconds > TIMED_SECONDS):
            try_shapes(trainer, module, [next(shapes)])
            synchronize(module.device)
            seconds, made = time.monotonic() - begin, made + 1
        per_update = self.planner.micro_batches / trainer.world_size * seconds / made
        needed, advice = left * per_update, ""
        if self.max_seconds is not None and self.max_seconds < needed:
            advice = f"; trainer.max_time stops it after {duration(self.max_seconds)}"
        elif module.device.type == "cpu" and needed > LONG_SECONDS:
            advice = "; on a processor, experiment=laptop takes half an hour or so"
        if trainer.is_global_zero:
            rate = f"{1 / per_update:,.2g} a second"
            self.console.print(f"about {duration(needed)} for {left:,} updates, {rate}{advice}")


class Trial:
    """A model with gradients and Adam's moments on the trainer's device, for trying micro-batches."""

    def __init__(self, config: ExperimentConfig, vocabulary_size: int, trainer: Trainer) -> None:
        self.trainer, self.grown = trainer, 0
        self.module = TranslationModule(config.model, config.optim, vocabulary_size, config.seed)
        self.module.trainer = trainer
        trainer.strategy.connect(self.module)
        trainer.precision_plugin.convert_module(self.module)
        self.module.to(trainer.strategy.root_device).on_fit_start()
        self.optimizer = self.module.configure_optimizers()
        make_resident(self.module, self.optimizer)

    def fits(self, split: PreparedSplit, batching: BatchingConfig) -> bool:
        """True where the largest micro-batches, enlarged by HEADROOM, fit in memory."""
        before = available_memory()
        if self.module.device.type == "cpu" and 2 * HEADROOM * self.grown > before:
            return False  # on a processor, running out of memory kills the process instead of raising an error
        self.trainer.accumulate_grad_batches = accumulation(batching.micro_batches, self.trainer.world_size)
        larger = replace(batching, tokens_per_update=int(HEADROOM * batching.tokens_per_update))
        try:
            planner = BatchPlanner(split.source_lengths, split.target_lengths, larger, seed=1)
            try_shapes(self.trainer, self.module, planner.largest_shapes())
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.optimizer.zero_grad(set_to_none=False)
            gc.collect()
        self.grown = max(self.grown, before - available_memory())
        return True


def settle_micro_batches(config: ExperimentConfig, corpus: PreparedCorpus) -> BatchingConfig:
    """The batching with the fewest micro-batches that `batching.max_tokens` allows, or, with auto, that fit in memory.

    It is decided when a run begins; from then on it is read from config.yaml, also with another number of devices.
    """
    batching, trainer = config.batching, make_trainer(config)
    tokens, devices = batching.tokens_per_update, trainer.world_size
    if (Path(config.run) / "config.yaml").exists():
        settled = build(BatchingConfig, read_config(Path(config.run)).get("batching", {}), config.run, "batching.")
        if replace(settled, micro_batches=batching.micro_batches) == batching:
            return settled
    if isinstance(batching.max_tokens, int):
        least = -(-tokens // batching.max_tokens)
        return replace(batching, micro_batches=-(-least // devices) * devices)
    require_one_process("batching.max_tokens=auto", "a number")
    split = corpus.split("train")
    longest = int(max(split.source_lengths.max(), split.target_lengths.max()))
    candidates = [devices]
    while tokens // (2 * candidates[-1]) >= longest:
        candidates.append(2 * candidates[-1])
    trial, fitting = Trial(config, corpus.manifest.vocabulary_size, trainer), 0
    for micro_batches in reversed(candidates):
        if not trial.fits(split, replace(batching, micro_batches=micro_batches)):
            break
        fitting = micro_batches
    require(
        fitting > 0,
        f"batching.max_tokens=auto: not even {tokens // candidates[-1]:,} tokens, as the longest sentence has, fit "
        "in memory: lower data.filters.max_tokens, or take a smaller model",
    )
    return replace(batching, micro_batches=fitting)


def settle_precision(config: ExperimentConfig, console: Console) -> ExperimentConfig:
    """The configuration with the precision that `auto` comes to on the run's device; prints how it was decided.

    bf16-mixed where it pays in a short measurement, else 32-true. It is decided when a run begins; from then on it is
    read from config.yaml, also on another machine.
    """
    if (Path(config.run) / "config.yaml").exists():
        saved = str(read_config(Path(config.run)).get("trainer", {}).get("precision"))
        return replace(config, trainer=replace(config.trainer, precision=saved))
    require_one_process("trainer.precision=auto", "32-true or bf16-mixed")
    exact = replace(config, trainer=replace(config.trainer, precision="32-true"))
    device, width = make_trainer(exact).strategy.root_device, config.model.d_model
    tokens = min(1024, config.batching.tokens_per_update // (config.batching.micro_batches or 1))
    rows, work = max(tokens // LENGTH, 1), "a product of 64 rows"
    # The small product first: where the device has none of bfloat16, large ones take torch seconds.
    factors = [torch.randn(n, width, device=device) for n in (64, width)]
    float32, bfloat16 = by_turns(lambda dtype: linear(*(x.to(dtype) for x in factors)), device)
    if bfloat16 <= 2 * float32:
        work = f"a decoder layer for {rows * LENGTH:,} tokens, with its gradients,"
        float32, bfloat16 = by_turns(layer_step(config.model, rows, device), device)
    # It has to be clearly faster: the layer leaves out what both do in float32, such as Adam.
    pays = float32 >= 1.1 * bfloat16
    precision = "bf16-mixed" if pays else "32-true"
    console.print(
        f"trainer.precision=auto: {precision}; {work} takes {1000 * float32:.2f} ms in float32 and "
        f"{1000 * bfloat16:.2f} ms in bfloat16"
    )
    return replace(config, trainer=replace(config.trainer, precision="bf16-mixed")) if pays else exact


def by_turns(work: Callable[[torch.dtype], object], device: torch.device) -> tuple[float, float]:
    """The least seconds of `work` with float32 and with bfloat16, after a first time that is not counted."""
    dtypes = (torch.float32, torch.bfloat16)
    rounds = [[seconds_of(partial(work, dtype), device) for dtype in dtypes] for _ in range(4)]
    float32, bfloat16 = (min(seconds) for seconds in zip(*rounds[1:], strict=True))
    return float32, bfloat16


def layer_step(model: ModelConfig, rows: int, device: torch.device) -> Callable[[torch.dtype], object]:
    """A decoder layer, the largest part of a training step, forward and backward."""
    layer = DecoderLayer(model).to(device)
    x_BTD = torch.randn(rows, LENGTH, model.d_model, device=device, requires_grad=True)

    def step(dtype: torch.dtype) -> None:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            y_BTD = layer(x_BTD, x_BTD, None)
        y_BTD.sum().backward()

    return step
