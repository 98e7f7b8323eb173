"""Measure and compute the memory that training a large model needs.

    python benchmarks/memory.py measure [ROW ...] [--updates N]    # this machine: peak memory and seconds per update
    python benchmarks/memory.py loss [TOKENS WORDS WIDTH]          # the loss alone, with its gradients
    python benchmarks/memory.py plan                               # computed: what fits on GPUs of 24, 40 and 80 GB

Models have random weights and train on random tokens. Each row runs in its own process, which returns freed memory to
the system at once, and whose peak begins to count when the model exists. `measure` prints the formula's result beside
each measurement; `plan` applies the same formula to the shapes of NLLB-200.

The formula gives bytes. The model has P parameters, T trained parameters and a vocabulary matrix of E
numbers. A micro-batch has S source and S target tokens, and an update has at least two micro-batches:

    weights         b P                      b: 2 with bf16-true, otherwise 4
    copies          2 P                      with bf16-mixed, in the forward pass
    gradients       b T
    optimizer       2 b T                    Adam; Adafactor: nothing worth counting
    kept            b S (D layers + D)       with checkpointing: the input of each layer, and the encoder's output
                    b S (encoder layers (8 D + F) + decoder layers (14 D + F)) + masks of dropout, without
    and the largest of
      loss          4 E + chunk              the gradient of the vocabulary's matrix in float32, and a chunk of logits
      layer         b E + b S (20 D + 3 F)   that gradient in the weights' type, one layer again, and its gradients
      embeddings    2 b E                    that gradient, and the embedding's
      update        12 E - b T               with bf16-true and Adafactor: the largest matrix in float32, when all
                                             other gradients have been freed
                    24 Q + b E - b T         with bf16-true and Adam: Q numbers (at most 2^24) in float32, six times
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

GB = 10**9
WORDS = 256_206
NLLB = {"heads": 16, "norm": "pre", "attention_bias": True, "dropout": 0.1}
SHAPES: dict[str, dict[str, Any]] = {
    "small": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, **NLLB},
    "600M": {"encoder_layers": 12, "decoder_layers": 12, "d_model": 1024, "d_ff": 4096, **NLLB},
    "1.3B": {"encoder_layers": 24, "decoder_layers": 24, "d_model": 1024, "d_ff": 8192, **NLLB},
    "3.3B": {"encoder_layers": 24, "decoder_layers": 24, "d_model": 2048, "d_ff": 8192, **NLLB},
}
"""The shapes of NLLB-200, and one that trains fast on a CPU."""
LENGTH = 32
"""The tokens of a sentence."""
GPUS = (24, 40, 80)
FREE = 0.95
"""The share of a GPU's memory for tensors: the rest is for CUDA and its libraries."""
MOST_TOKENS = 16_384
"""More tokens in a micro-batch make no GPU faster."""


@dataclass
class Setting:
    """What to train, and how."""

    shape: str
    words: int = WORDS
    precision: str = "bf16-true"
    optimizer: str = "adam"
    checkpointing: bool = False
    frozen: tuple[str, ...] = ()
    tokens: int = 1024
    """The tokens of a micro-batch on each side."""

    def __str__(self) -> str:
        words = [
            self.shape,
            f"trainer.precision={self.precision}",
            f"optim.optimizer={self.optimizer}",
        ]
        if self.checkpointing:
            words.append("model.checkpointing=true")
        if self.frozen:
            words.append(f"optim.frozen=[{','.join(self.frozen)}]")
        return " ".join(words)


ROWS = {
    "plain": Setting("small", 32_000, "32-true"),
    "checkpointing": Setting("small", 32_000, "32-true", checkpointing=True),
    "adafactor": Setting("small", 32_000, "32-true", "adafactor", checkpointing=True),
    "frozen": Setting(
        "small", 32_000, "32-true", checkpointing=True, frozen=("embeddings", "encoder")
    ),
    "mixed": Setting("small", 32_000, "bf16-mixed", tokens=512),
    "bfloat16": Setting("small", 32_000, checkpointing=True, tokens=64),
    "bfloat16-adafactor": Setting(
        "small", 32_000, optimizer="adafactor", checkpointing=True, tokens=64
    ),
    "large-float32": Setting(
        "600M", precision="32-true", optimizer="adafactor", checkpointing=True, tokens=64
    ),
    "large-adafactor": Setting("600M", optimizer="adafactor", checkpointing=True, tokens=64),
    "large-adam": Setting("600M", checkpointing=True, tokens=64),
    "large-mixed": Setting("600M", precision="bf16-mixed", checkpointing=True, tokens=64),
    "large-frozen": Setting(
        "600M", checkpointing=True, frozen=("embeddings", "encoder"), tokens=64
    ),
}
"""The rows of `measure`. On a CPU without instructions for bfloat16, the large ones take minutes."""
PLANS = (
    Setting("", precision="bf16-mixed"),
    Setting("", precision="bf16-mixed", checkpointing=True),
    Setting("", precision="bf16-mixed", optimizer="adafactor", checkpointing=True),
    Setting("", checkpointing=True),
    Setting("", optimizer="adafactor", checkpointing=True),
    Setting("", checkpointing=True, frozen=("embeddings", "encoder")),
)


@dataclass
class Numbers:
    """The numbers of a model that decide its memory."""

    parameters: int
    trained: int
    is_matrix_trained: bool
    """Whether the vocabulary's matrix is trained."""


@cache
def numbers_of(shape: str, words: int, frozen: tuple[str, ...]) -> Numbers:
    from nmt.config import ModelConfig
    from nmt.model import described
    from nmt.training.frozen import freeze, trained_parameters

    model = described(ModelConfig(name="random", **SHAPES[shape]), words)
    freeze(model, frozen)
    return Numbers(
        sum(parameter.numel() for parameter in model.parameters()),
        sum(parameter.numel() for parameter in trained_parameters(model)),
        model.output.weight.requires_grad,
    )


def chunk_bytes(setting: Setting, device: str) -> int:
    """A chunk of logits: in the products' type, in float32, and their gradient."""
    import torch

    from nmt.training.loss import SLICE_NUMBERS, chunk_rows

    rows = min(chunk_rows(setting.words, torch.device(device)), setting.tokens)
    width = SHAPES[setting.shape]["d_model"]
    part = min(SLICE_NUMBERS, setting.words * width)
    if setting.precision == "32-true":
        # The softmax overwrites the logits.
        return 4 * rows * setting.words + 4 * part
    return (2 + 4 + 2) * rows * setting.words + 2 * part


def kept_bytes(setting: Setting) -> int:
    """What a forward pass keeps for the backward pass."""
    shape = SHAPES[setting.shape]
    width = shape["d_model"]
    inner = shape["d_ff"]
    layers = shape["encoder_layers"] + shape["decoder_layers"]
    size = 4 if setting.precision == "32-true" else 2
    if setting.checkpointing:
        # With bf16-mixed, the sums between layers are float32.
        size = 2 if setting.precision == "bf16-true" else 4
        return size * setting.tokens * width * (layers + 1)
    numbers = shape["encoder_layers"] * (8 * width + inner) + shape["decoder_layers"] * (
        14 * width + inner
    )
    masks = width * (2 * shape["encoder_layers"] + 3 * shape["decoder_layers"])
    if setting.precision == "bf16-mixed":
        # The inputs of layer norms are float32.
        masks += 2 * width * (2 * shape["encoder_layers"] + 3 * shape["decoder_layers"])
    return setting.tokens * (size * numbers + masks)


def computed_bytes(setting: Setting, device: str = "cuda") -> int:
    """The formula."""
    from nmt.training.rounding import PIECE

    shape = SHAPES[setting.shape]
    width = shape["d_model"]
    inner = shape["d_ff"]
    numbers = numbers_of(setting.shape, setting.words, setting.frozen)
    size = 2 if setting.precision == "bf16-true" else 4
    fixed = size * (numbers.parameters + numbers.trained)
    if setting.optimizer == "adam":
        fixed += 2 * size * numbers.trained
    copies = 2 * numbers.parameters if setting.precision == "bf16-mixed" else 0
    matrix = setting.words * width if numbers.is_matrix_trained else 0
    kept = kept_bytes(setting)
    # Activations and their gradients are bfloat16 in both other precisions.
    activation = 4 if setting.precision == "32-true" else 2
    layer = activation * setting.tokens * (20 * width + 3 * inner)
    peaks = [
        copies + kept + 4 * matrix + chunk_bytes(setting, device),
        kept + size * matrix + layer,
        2 * size * matrix,
    ]
    # All other gradients have been freed by then.
    if setting.precision == "bf16-true" and setting.optimizer == "adafactor":
        peaks.append(12 * matrix - size * numbers.trained)
    elif setting.precision == "bf16-true":
        peaks.append(24 * min(PIECE, matrix) + size * matrix - size * numbers.trained)
    return fixed + max(peaks)


def resident(key: str) -> int:
    """VmRSS or VmHWM, the resident set now or at its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise SystemExit("this system has no /proc/self/status")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(setting: Setting, updates: int) -> tuple[float, float]:
    """Bytes at the peak, without the libraries, and seconds per update."""
    from contextlib import nullcontext

    import torch

    from nmt.config import ModelConfig, OptimConfig
    from nmt.data import dummy_batch
    from nmt.extensions import OptimizerEntry
    from nmt.kernels import forget_old_kernels
    from nmt.registry import entries_of
    from nmt.training import TranslationModule

    forget_old_kernels()
    # Loads the libraries' kernels, which are no part of the model.
    torch.nn.functional.linear(torch.ones(256, 256), torch.ones(256, 256))
    libraries = resident("VmRSS")
    model = ModelConfig(name="random", checkpointing=setting.checkpointing, **SHAPES[setting.shape])
    optim = OptimConfig(frozen=[*setting.frozen])
    module = TranslationModule(model, optim, setting.words, seed=1)
    if setting.precision == "bf16-true":
        module.bfloat16()
    make = entries_of(OptimizerEntry)[setting.optimizer].load()
    options = {"lr": 1e-5, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0, "fused": True}
    optimizer = make(module.model, setting.precision, **options)
    batch = dummy_batch(setting.tokens // LENGTH, LENGTH, LENGTH)
    mixed = (
        torch.autocast("cpu", torch.bfloat16)
        if setting.precision == "bf16-mixed"
        else nullcontext()
    )
    forget_peak()
    seconds = []
    for _ in range(updates):
        start = time.perf_counter()
        for _ in range(2):
            with mixed:
                loss, _ = module.losses(batch)
            (loss / batch.target_out.numel() / 2).backward()
            del loss
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    return resident("VmHWM") - libraries, min(seconds)


def measure_loss(tokens: int, words: int, width: int) -> tuple[float, float]:
    """Bytes besides the weight and the hidden states, and seconds, of the loss and its gradients."""
    import torch

    from nmt.training.loss import label_smoothed_cross_entropy

    weight = torch.empty(words, width).uniform_(-0.05, 0.05).requires_grad_()
    hidden = torch.randn(tokens, width, requires_grad=True)
    targets = torch.randint(words, (tokens,))
    before = resident("VmRSS")
    forget_peak()
    start = time.perf_counter()
    loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    loss.backward()
    return resident("VmHWM") - before, time.perf_counter() - start


def in_own_process(*words: str) -> str:
    """Run this script in a process that returns freed memory to the system at once."""
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, __file__, *words]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def print_measurements(names: list[str], updates: int) -> None:
    print("| setting | tokens | measured GB | computed GB | s per update |\n|---|---|---|---|---|")
    for name in names:
        setting = ROWS[name]
        peak, seconds = map(float, in_own_process("row", name, "--updates", str(updates)).split())
        computed = computed_bytes(setting, "cpu") / GB
        print(
            f"| {setting} | {setting.tokens:,} | {peak / GB:.2f} | {computed:.2f} | {seconds:.0f} |",
            flush=True,
        )


def reserved_bytes(setting: Setting) -> int:
    """What nmt's memory check keeps free for gaps between tensors."""
    from nmt.training.memory import RESERVED_BYTES, RESERVED_SHARE

    size = 2 if setting.precision == "bf16-true" else 4
    trained = numbers_of(setting.shape, setting.words, setting.frozen).trained
    return RESERVED_BYTES + int(RESERVED_SHARE * size * trained)


def largest_micro_batch(setting: Setting, gigabytes: int) -> int:
    """The most tokens of a micro-batch on each side, in steps of 256; 0: not even 256."""
    least = 0
    free = FREE * gigabytes * GB - reserved_bytes(setting)
    for tokens in range(256, MOST_TOKENS + 1, 256):
        setting.tokens = tokens
        if computed_bytes(setting) > free:
            break
        least = tokens
    return least


def print_plan() -> None:
    head = " | ".join(f"{gigabytes} GB" for gigabytes in GPUS)
    print(f"| setting | GB at 4,096 tokens | {head} |\n|---|---|{'---|' * len(GPUS)}")
    for shape in ("600M", "1.3B", "3.3B"):
        for plan in PLANS:
            setting = Setting(
                shape, WORDS, plan.precision, plan.optimizer, plan.checkpointing, plan.frozen, 4096
            )
            total = computed_bytes(setting) / GB
            cells = []
            for gigabytes in GPUS:
                tokens = largest_micro_batch(setting, gigabytes)
                cells.append(f"{tokens:,}" if tokens else "no")
            setting.tokens = 4096
            print(f"| {setting} | {total:.1f} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("measure", "loss", "plan", "row", "loss-row"))
    parser.add_argument(
        "values", nargs="*", metavar="ROW", help="rows of `measure`, or the sizes of `loss`"
    )
    parser.add_argument("--updates", type=int, default=2)
    options = parser.parse_args()
    if options.what == "plan":
        print_plan()
    elif options.what == "measure":
        print_measurements(options.values or list(ROWS), options.updates)
    elif options.what == "row":
        print(*measure(ROWS[options.values[0]], options.updates))
    elif options.what == "loss-row":
        tokens, words, width = map(int, options.values)
        print(*measure_loss(tokens, words, width))
    else:
        sizes = options.values or ["4096", str(WORDS), "1024"]
        peak, seconds = map(float, in_own_process("loss-row", *sizes).split())
        print(f"{peak / GB:.2f} GB besides the weight and the hidden states, {seconds:.0f} s")


if __name__ == "__main__":
    main()
