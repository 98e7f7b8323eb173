"""What a training step costs on a GPU, counted on a CPU: waits for results, and started kernels.

A GPU computes while the program continues, until the program reads a result. If a step starts many
small kernels, the GPU waits for Python.
"""

import os
from collections import Counter
from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning import Trainer
from rich.console import Console
from torch._subclasses import FakeTensorMode

from nmt import kernels
from nmt.commands import compose
from nmt.config import DecodeConfig
from nmt.data import Batch, open_corpus
from nmt.model import Transformer
from nmt.search import EngineOptions
from nmt.search.torch_engine import load
from nmt.training import Training, TranslationModule, loss as loss_module, settle_trainer, train
from nmt.training.automatic import is_worth_compiling
from nmt.training.loss import label_smoothed_cross_entropy
from tests.helpers.waits import Operations, counted_waits


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the branches of the code for GPUs."""
    for path in ("nmt.kernels.device.on_cpu", "nmt.model.layers.on_cpu", "nmt.kernels.on_cpu"):
        monkeypatch.setattr(path, lambda x: False)
    monkeypatch.setattr("nmt.kernels.runs_ahead", lambda device: True)
    # On a GPU, dropout is one operation.
    monkeypatch.setattr(
        "nmt.kernels.dropout.F.dropout", lambda x, p: torch.native_dropout(x, p, True)[0]
    )


@pytest.mark.slow
def test_training_waits_only_for_its_reports(toy, monkeypatch, as_on_a_gpu, tmp_path):
    """Counted from the third update, when Adam's state exists, until the last checkpoint."""
    counting = ExitStack()
    counted: Counter[str] = Counter()
    step = TranslationModule.training_step
    save = Trainer.save_checkpoint

    def training_step(module: TranslationModule, batch: Batch, batch_index: int) -> torch.Tensor:
        nonlocal counted
        if batch.update == 2 and batch.micro_batch == 0:
            counted = counting.enter_context(counted_waits()).places
        return step(module, batch, batch_index)

    def save_checkpoint(*arguments: Any, **more: Any) -> None:
        counting.close()
        save(*arguments, **more)

    monkeypatch.setattr(TranslationModule, "training_step", training_step)
    monkeypatch.setattr(Trainer, "save_checkpoint", save_checkpoint)
    monkeypatch.setattr("nmt.training.validation.Validation.on_update_end", lambda *arguments: None)
    options = ["trainer.max_steps=21", "checkpoints.every_steps=21", f"run={tmp_path / 'run'}"]
    train(compose("train", [*toy, *options]), Console(quiet=True))
    for place in list(counted):
        if place.startswith("data/"):  # batches are made ahead, by other processes
            del counted[place]
    reports = 4  # after updates 5, 10, 15 and 20
    assert counted == {
        "training/module.py check_finite": reports + 1,  # once more after the last update
        "training/metrics.py report_updates": reports,
        "training/metrics.py measured": reports,
    }


def fake_batch(rows: int, width: int) -> Batch:
    ids = torch.empty(rows, width, dtype=torch.long)
    return Batch(ids, ids, ids, torch.empty(rows * width - 5, dtype=torch.long), padded=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "big"])
def test_a_training_step_starts_few_kernels(name, as_on_a_gpu, monkeypatch):
    """The limits leave room for a few operations, but not for a few in each layer."""
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", loss_module.CHUNK_LOGITS_ELSEWHERE)
    with FakeTensorMode():
        model = Transformer(compose("train", [f"model={name}"]).model, 37_000)
        batch = fake_batch(256, 30)
        with torch.autocast("cpu", torch.bfloat16):
            with Operations() as forward:
                hidden = model.decoder_states(batch.source, batch.target_in, batch.padded).flatten(
                    0, 1
                )
            chunks = -(-len(hidden) // loss_module.chunk_rows(37_000, torch.device("cuda")))
            with Operations() as loss_operations:
                targets = batch.target_out.flatten()
                loss, _ = label_smoothed_cross_entropy(hidden, model.output.weight, targets, 0.1)
        with Operations() as backward:
            loss.backward()
    assert chunks == 2
    assert forward.counts.total() <= 380
    assert loss_operations.counts.total() <= 40 * chunks
    assert backward.counts.total() <= 500


def test_a_gpu_gets_larger_chunks_of_logits():
    assert loss_module.chunk_rows(37_000, torch.device("cpu")) == 2**23 // 37_000
    assert loss_module.chunk_rows(256_000, torch.device("cpu")) == loss_module.FEWEST_ROWS
    assert loss_module.chunk_rows(37_000, torch.device("cuda")) == 2**28 // 37_000


@pytest.fixture
def reset_settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_training_and_search_never_use_cudnn_for_attention(
    toy, checkpoint, reset_settings, tmp_path
):
    assert torch.backends.cuda.cudnn_sdp_enabled()
    load([Path(checkpoint)], EngineOptions(DecodeConfig(), device="cpu"), print)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    options = ["trainer.max_steps=1", "validation.bleu_sentences=0", f"run={tmp_path / 'run'}"]
    train(compose("train", [*toy, *options]), Console(quiet=True))
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert (
        not torch.are_deterministic_algorithms_enabled()
    )  # kernels for CPUs are deterministic anyway


CUDA = torch.device("cuda")


@pytest.mark.parametrize(
    ("options", "share", "deterministic", "notice"),
    [
        (
            [],
            2,
            True,
            "computes 2 micro-batches of 120 tokens, one after another; batching.micro_batches=1",
        ),
        (["trainer.deterministic=true"], 1, True, ""),
        (["trainer.deterministic=false"], 1, False, ""),
        (["batching.tokens_per_update=50000"], 2, True, ""),
    ],
)
def test_training_prepares_a_gpu(
    toy, reset_settings, tmp_path, options, share, deterministic, notice
):
    config = compose("train", [*toy, *options, f"run={tmp_path / 'run'}"])
    corpus = open_corpus(Path(config.prepared))
    console = Console(record=True, width=200, file=StringIO())
    training = Training(settle_trainer(config), corpus, console)
    torch.use_deterministic_algorithms(
        False
    )  # as Lightning leaves it if the user does not ask for it
    training.prepare_device(torch.device("cpu"), share)
    assert not torch.are_deterministic_algorithms_enabled()
    training.prepare_device(CUDA, share)
    assert torch.are_deterministic_algorithms_enabled() == deterministic
    text = console.export_text()
    assert notice in text if notice else text == ""


@pytest.mark.parametrize(
    ("options", "compiles"),
    [
        ([], True),
        (["minutes=20"], True),
        (["minutes=5"], False),
        (["experiment=laptop"], False),
    ],
)
def test_a_gpu_compiles_unless_the_run_is_short(options, compiles, here):
    config = compose("train", options)
    asked = config.trainer.compile
    assert (is_worth_compiling(config, CUDA) if asked == "auto" else asked) == compiles
    assert not is_worth_compiling(config, torch.device("cpu"))


def test_deterministic_kernels_do_not_fill_new_tensors(reset_settings):
    kernels.use_deterministic_kernels(True)
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.utils.deterministic.fill_uninitialized_memory


def test_the_users_environment_variables_are_kept(reset_settings, monkeypatch):
    kernels.prepare()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert os.environ["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native")
    monkeypatch.delenv("PYTORCH_ALLOC_CONF")
    kernels.prepare()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    assert os.environ["PYTORCH_ALLOC_CONF"] == "backend:native"
