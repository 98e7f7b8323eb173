"""All uses of other libraries' private names, each with the version it was checked against."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from subprocess import Popen
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ProcessPoolExecutor

    from lightning import Trainer
    from torch import Tensor, device


def onednn_linear(x: "Tensor", weight: "Tensor", bias: "Tensor | None" = None) -> "Tensor":
    """Compute x W^T + b with oneDNN: [..., K] and [N, K] -> [..., N] (torch 2.13).

    No gradients, any strides.
    """
    import torch

    post_op = "none"  # such as "relu", with its parameters and its algorithm
    linear = torch.ops.mkldnn._linear_pointwise
    return linear(x, weight, bias, post_op, [], "")  # type: ignore[no-any-return]


def has_fast_bfloat16(device: "device") -> bool:
    """Return whether the device has instructions for matrix products in bfloat16 (torch 2.13)."""
    import torch

    if device.type == "cuda":
        # By default, torch also returns True for GPUs that only emulate bfloat16.
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())


def prepare_compiler() -> None:
    """Let torch.compile make few kernels, the same in each process (torch 2.11 and 2.13)."""
    import torch._dynamo.config
    import torch._inductor.config
    import torch.fx.experimental._config

    # Do not take two widths that happen to be equal in the first batch for the same number.
    torch.fx.experimental._config.use_duck_shape = False
    # Do not choose between kernels by their speed, which differs from process to process.
    torch._inductor.config.deterministic = True
    torch._dynamo.config.recompile_limit = 32


def has_cpp_compiler() -> bool:
    """Return whether torch.compile finds a C++ compiler ($CXX or g++; torch 2.11 and 2.13)."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        return bool(get_cpp_compiler())
    except InvalidCxxCompiler:
        return False


def default_kernel_cache() -> str:
    """Return the folder in which torch.compile keeps kernels by default (torch 2.11 and 2.13)."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    return default_cache_dir()


def without_ddp_wrapper(trainer: "Trainer") -> None:
    """Let the processes train copies of a module without DistributedDataParallel (Lightning 2.6).

    The wrapper would keep a second copy of the gradients and broadcast buffers before each
    micro-batch.
    """
    from lightning.pytorch.strategies import DDPStrategy

    # The gradients are added by nmt/training/reduction.py.
    if isinstance(trainer.strategy, DDPStrategy):
        trainer.strategy.configure_ddp = lambda: None  # type: ignore[method-assign]


def add_to_each(totals: "list[Tensor]", addends: "list[Tensor] | float") -> None:
    """Add a number, or one tensor to each, in place and in one operation (torch 2.11 and 2.13)."""
    import torch

    torch._foreach_add_(totals, addends)


def move_each(tensors: "list[Tensor]", ends: "list[Tensor]", weight: float) -> None:
    """Do `tensor.lerp_(end, weight)` for each pair in one operation (torch 2.11 and 2.13)."""
    import torch

    torch._foreach_lerp_(tensors, ends, weight)


def between_each(
    tensors: "list[Tensor]",
    ends: "list[Tensor]",
    weight: float,
) -> "Sequence[Tensor]":
    """Return `tensor.lerp(end, weight)` for each pair in one operation (torch 2.11 and 2.13)."""
    import torch

    return torch._foreach_lerp(tensors, ends, weight)


def copy_to_each(tensors: "list[Tensor]", sources: "list[Tensor]") -> None:
    """Do `tensor.copy_(source)` for each pair in one operation (torch 2.11 and 2.13)."""
    import torch

    torch._foreach_copy_(tensors, sources)


def without_sigterm_broadcast(trainer: "Trainer") -> None:
    """Disable a broadcast before each micro-batch (Lightning 2.6).

    The broadcast informs all processes whether one received SIGTERM.
    """
    # Each broadcast would also wait for the device. nmt's callback for checkpoints exchanges
    # signals.
    loop = trainer.fit_loop.epoch_loop
    loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]


def launched_processes(trainer: "Trainer") -> list[Popen[bytes]]:
    """Return the other processes that Lightning launched (Lightning 2.6)."""
    from lightning.pytorch.strategies.launchers import subprocess_script

    launcher: Any = trainer.strategy.launcher
    # Processes that torchrun or SLURM started have no such launcher.
    if isinstance(launcher, subprocess_script._SubprocessScriptLauncher):
        return launcher.procs
    return []


def silence_process_observer() -> None:
    """Disable Lightning's observer of launched processes (Lightning 2.6).

    It can kill this process silently.
    """
    from lightning.pytorch.strategies.launchers import subprocess_script

    launchers: Any = subprocess_script
    # nmt/training/watch.py observes them instead and says which process ended.
    launchers._launch_process_observer = lambda processes: None


def line_statistics(metric: Any, hypotheses: list[str], references: list[str]) -> list[list[float]]:
    """Return the statistics of each line for a sacreBLEU metric (2.6).

    They sum to those of the corpus.
    """
    rows = metric._extract_corpus_statistics(hypotheses, [references])
    return list(map(list, rows))


def score_of_statistics(metric: Any, statistics: Any) -> float:
    """Return the score of a sacreBLEU metric (2.6) from summed statistics."""
    return float(metric._compute_score_from_stats(statistics).score)


class SignatureOfTest:
    """A signature that sacreBLEU's paired tests (2.6) complete with their seed and samples."""

    def __init__(self, signature: str) -> None:
        self.parts = [signature]

    def update(self, key: str, value: Any) -> None:
        self.parts.append(f"{key}:{value}")

    def __str__(self) -> str:
        return "|".join(self.parts)


class MeanOfLines:
    """A metric for sacreBLEU's paired tests (2.6) whose score is the mean of its lines' scores.

    The scores are given, so that the tests score no line again.
    """

    def __init__(
        self, name: str, signature: str, scores: Mapping[tuple[str, ...], list[float]]
    ) -> None:
        self.name = name
        self.signature = signature
        self.scores = scores
        """The lines of a system -> their scores."""

    def get_signature(self) -> SignatureOfTest:
        # A new one, because each test adds its own parts.
        return SignatureOfTest(self.signature)

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Any
    ) -> list[list[float]]:
        """The statistics of each line: its score, and 1 to count it."""
        return [[score, 1.0] for score in self.scores[tuple(hypotheses)]]

    def _compute_score_from_stats(self, statistics: Any) -> Any:
        from sacrebleu.metrics.base import Score

        total, count = statistics
        return Score(self.name, float(total) / float(count))

    def _aggregate_and_compute(self, statistics: Any) -> Any:
        totals = [sum(column) for column in zip(*statistics, strict=True)]
        return self._compute_score_from_stats(totals)


def close_answers(pool: "ProcessPoolExecutor") -> None:
    """Close a pool's result pipe (CPython 3.11).

    Otherwise, a thread may wait for the rest of a killed worker's answer.
    """
    # AttributeError: another version of Python; OSError: the pipe is closed already.
    with suppress(AttributeError, OSError):
        pool._result_queue._writer.close()  # type: ignore[attr-defined]


def limit_of_download(size: int, problem: Exception) -> "dict[str, Any]":
    """Arguments with which hf_hub_download raises `problem` after `size` bytes of a file.

    The library checks the size only at the end of a body, which may never come. Empty for versions
    before 1.0 of huggingface_hub, which have no such argument (huggingface_hub 0.34 and 2.4).
    """
    from inspect import signature

    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import tqdm

    if "tqdm_class" not in signature(hf_hub_download).parameters:
        return {}

    class Limited(tqdm):
        """A progress bar, which the library tells the number of bytes of each part."""

        received = 0.0

        def update(self, n: "float | None" = 1) -> "bool | None":
            self.received += n or 0
            if self.received > size:
                raise problem
            return super().update(n)  # type: ignore[no-any-return]

    return {"tqdm_class": Limited}
