"""What a training step asks of a GPU, counted on a CPU: waits for results, and kernels to start.

A GPU computes while the program goes on, until the program reads a result. It needs microseconds for many kernels, but
Python needs about five for each.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning import Trainer
from rich.console import Console
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import nmt
from nmt import kernels
from nmt.commands import compose
from nmt.config import DecodeConfig
from nmt.data import Batch
from nmt.model import Transformer
from nmt.training import loss as loss_module, module as training_module, train
from nmt.training.loss import label_smoothed_cross_entropy

ROOT = Path(nmt.__file__).parent
READING = ("item", "tolist", "__int__", "__float__", "__bool__", "__index__", "nonzero", "cpu", "numpy", "is_nonzero")


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the paths of the code for GPUs."""
    for path in ("nmt.kernels.device.on_cpu", "nmt.model.layers.on_cpu", "nmt.kernels.on_cpu"):
        monkeypatch.setattr(path, lambda x: False)
    monkeypatch.setattr("nmt.kernels.runs_ahead", lambda device: True)
    # On a GPU, dropout is one operation.
    monkeypatch.setattr("nmt.kernels.dropout.F.dropout", lambda x, p: torch.native_dropout(x, p, True)[0])


def place_of_call() -> str:
    """The innermost function of nmt that is being called, without reading batches, which is done ahead."""
    frame: Any = sys._getframe(2)
    while frame:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            return f"{path.relative_to(ROOT)} {frame.f_code.co_name}"
        frame = frame.f_back
    return "elsewhere"


def test_training_waits_only_for_its_reports(toy, monkeypatch, as_on_a_gpu, tmp_path):
    waits: Counter[str] = Counter()
    updates = 0

    def watched(name: str) -> Callable[..., Any]:
        read = getattr(torch.Tensor, name)

        def reading(tensor: torch.Tensor, *arguments: Any, **more: Any) -> Any:
            place = place_of_call()
            if not place.startswith("data/"):
                waits[place] += 1
            return read(tensor, *arguments, **more)

        return reading

    step = training_module.TranslationModule.training_step

    def training_step(*arguments: Any) -> torch.Tensor:
        # Count from the second update to the last but one: the first builds Adam's state, the last saves.
        nonlocal updates
        updates += 1
        if updates == 3:
            for name in READING:
                monkeypatch.setattr(torch.Tensor, name, watched(name))
        return step(*arguments)

    monkeypatch.setattr(training_module.TranslationModule, "training_step", training_step)
    saved = Trainer.save_checkpoint

    def save(*arguments: Any, **more: Any) -> None:
        counted.update(waits)
        saved(*arguments, **more)

    counted: Counter[str] = Counter()
    monkeypatch.setattr(Trainer, "save_checkpoint", save)
    options = ["trainer.max_steps=21", "checkpoints.every_steps=21", "validation.every_steps=1000"]
    options += ["validation.bleu_sentences=0", f"run={tmp_path / 'run'}"]
    monkeypatch.setattr("nmt.training.validation.Validation.on_update_end", lambda *arguments: None)
    train(compose("train", [*toy, *options]), Console(quiet=True))
    reports = 4  # after updates 5, 10, 15 and 20; the last update checks once more that its gradient is finite
    assert counted == {
        "training/module.py check_finite": reports + 1,
        "training/metrics.py report_updates": 2 * reports,
    }


class Operations(TorchDispatchMode):
    """Counts the operations that start a kernel: all but views and questions about tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        if not operation.is_view and not operation.name().startswith("prim::"):
            self.count += operation.name() != "aten::_unsafe_view"
        return operation(*arguments, **(named or {}))


def fake_batch(rows: int, width: int) -> Batch:
    ids = torch.empty(rows, width, dtype=torch.long)
    return Batch(ids, ids, ids, torch.empty(rows * width - 5, dtype=torch.long), padded=False)


@pytest.mark.parametrize("name", ["base", "big"])
def test_a_training_step_starts_few_kernels(name, as_on_a_gpu, monkeypatch):
    """With base on an H100, a micro-batch of 25,000 tokens takes as long as Python takes for 5,000 kernels."""
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", loss_module.CHUNK_LOGITS_ELSEWHERE)
    with FakeTensorMode():
        model = Transformer(compose("train", [f"model={name}"]).model, 37_000)
        batch = fake_batch(256, 30)
        with torch.autocast("cpu", torch.bfloat16):
            with Operations() as forward:
                hidden = model.decoder_states(batch.source, batch.target_in, batch.padded).flatten(0, 1)
            chunks = -(-len(hidden) // loss_module.chunk_rows(37_000, torch.device("cuda")))
            with Operations() as loss_operations:
                targets = batch.target_out.flatten()
                loss, _ = label_smoothed_cross_entropy(hidden, model.output.weight, targets, 0.1)
        with Operations() as backward:
            loss.backward()
    assert chunks == 2
    assert forward.count <= 380
    assert loss_operations.count <= 40 * chunks
    assert backward.count <= 500


def test_a_gpu_gets_larger_chunks_of_logits():
    assert loss_module.chunk_rows(37_000, torch.device("cpu")) == 2**23 // 37_000
    assert loss_module.chunk_rows(37_000, torch.device("cuda")) == 2**28 // 37_000


@pytest.fixture
def reset_settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_training_and_search_never_use_cudnn_for_attention(toy, checkpoint, reset_settings, tmp_path):
    from nmt.search import EngineOptions
    from nmt.search.torch_engine import load

    assert torch.backends.cuda.cudnn_sdp_enabled()
    load([Path(checkpoint)], EngineOptions(DecodeConfig(), device="cpu"), print)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    options = ["trainer.max_steps=1", "validation.bleu_sentences=0", f"run={tmp_path / 'run'}"]
    train(compose("train", [*toy, *options]), Console(quiet=True))
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert not torch.are_deterministic_algorithms_enabled()  # kernels for CPUs are deterministic anyway


def test_deterministic_kernels_do_not_fill_new_tensors(reset_settings):
    kernels.use_deterministic_kernels(True)
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.utils.deterministic.fill_uninitialized_memory


def test_the_users_environment_variables_are_kept(reset_settings, monkeypatch):
    import os

    kernels.prepare()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native")
    monkeypatch.delenv("PYTORCH_ALLOC_CONF")
    kernels.prepare()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    assert os.environ["PYTORCH_ALLOC_CONF"] == "backend:native"
