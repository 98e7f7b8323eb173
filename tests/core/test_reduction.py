"""Any number of processes adds gradients in the same order and sends little.

The reference adds the micro-batches' gradients in a tree, one at a time. The processes are real
and communicate by gloo.
"""

import os
import socket
import subprocess
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from lightning import LightningModule, Trainer
from torch import Tensor, nn

from nmt.compat import without_ddp_wrapper
from nmt.training import exchange, reduction
from nmt.training.reduction import FixedOrderSum, buckets_of, has_fixed_order
from tests.helpers.preloaded import python

MICRO_BATCHES = 8
SHAPES = [(7, 5), (5,), (64, 3), (2, 3, 4)]
SMALL_BUCKET = 50  # numbers: cuts the third parameter, and puts others together


class Products(nn.Module):
    """A loss whose gradients have numbers of many sizes: their sum depends on the order."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.without_gradient = nn.Parameter(torch.zeros(3, dtype=dtype))  # in the last bucket
        self.weights = nn.ParameterList(torch.zeros(shape, dtype=dtype) for shape in SHAPES)

    def forward(self, factors: list[Tensor]) -> Tensor:
        terms = [
            (weight * factor).sum() for weight, factor in zip(self.weights, factors, strict=True)
        ]
        return torch.stack(terms).sum()


def factors_of(micro_batch: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(micro_batch)

    def draw(shape: tuple[int, ...]) -> Tensor:
        numbers = torch.randn(shape, generator=generator)
        return numbers * 10 ** torch.randint(-4, 4, shape, generator=generator)

    return [draw(shape) for shape in SHAPES]


def in_a_tree(terms: list[Tensor]) -> Tensor:
    while len(terms) > 1:
        terms = [terms[n] + terms[n + 1] for n in range(0, len(terms), 2)]
    return terms[0]


def expected(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    columns = zip(*(factors_of(number) for number in range(MICRO_BATCHES)), strict=True)
    return [in_a_tree([factor.to(dtype) for factor in column]) for column in columns]


def sums_of(micro_batch: int) -> Tensor:
    return torch.tensor([micro_batch / 3, 10.0**micro_batch, 1.0])


def run_update(module: Products, total: FixedOrderSum, rank: int, share: int) -> Tensor:
    sums = torch.zeros(3)
    for number in range(1, share + 1):
        micro_batch = rank * share + number - 1
        sums += sums_of(micro_batch)
        total.begin(number)
        module(factors_of(micro_batch)).backward()
        # All buckets but the last were exchanged during the last backward pass.
        early = len(total.buckets) - 1 if number == share and total.buckets else 0
        assert total.sent == early
        total.end(sums)
    return sums


def work(rank_word: str, processes_word: str, port: str, folder: str, dtype: str) -> None:
    """Make two updates as one of several processes, and save the results."""
    rank = int(rank_word)
    processes = int(processes_word)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=processes)
    reduction.BUCKET_NUMBERS = SMALL_BUCKET
    sent = 0
    swap = exchange.swap

    def counted(part: Tensor, received: Tensor, other: int) -> None:
        nonlocal sent
        sent += part.numel()
        swap(part, received, other)

    exchange.swap = counted
    module = Products(getattr(torch, dtype))
    share = MICRO_BATCHES // processes
    total = FixedOrderSum(module, share, len(sums_of(0)))
    results = []
    for _ in range(2):
        sums = run_update(module, total, rank, share)
        results.append(([weight.grad for weight in module.weights], sums))
        module.zero_grad()
    kept = sum(len(vector) for vector in total.vectors.values())
    torch.save({"results": results, "sent": sent / 2, "kept": kept}, f"{folder}/{rank}")
    dist.barrier()
    dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_one_process_adds_in_a_tree():
    module = Products()
    total = FixedOrderSum(module, MICRO_BATCHES, len(sums_of(0)))
    for _ in range(2):
        sums = run_update(module, total, 0, MICRO_BATCHES)
        for weight, gradient in zip(module.weights, expected(), strict=True):
            assert torch.equal(weight.grad, gradient)
        assert torch.equal(sums, in_a_tree([sums_of(n) for n in range(MICRO_BATCHES)]))
        module.zero_grad()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "dtype"), [(2, "float32"), (4, "float32"), (8, "float32"), (4, "bfloat16")]
)
def test_processes_compute_the_bits_of_one_process_and_send_little(processes, dtype, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    port = free_port()
    script = "import sys; from tests.core.test_reduction import work; work(*sys.argv[1:])"
    command = [python(), "-c", script]
    words = [
        [*command, str(rank), str(processes), str(port), str(tmp_path), dtype]
        for rank in range(processes)
    ]
    running = [subprocess.Popen(line, env=environment) for line in words]
    try:
        assert [process.wait(100) for process in running] == [0] * processes
    finally:
        for process in running:
            process.kill()
    numbers = sum(torch.Size(shape).numel() for shape in SHAPES)
    for rank in range(processes):
        content = torch.load(tmp_path / str(rank))
        for gradients, sums in content["results"]:
            for gradient, whole in zip(gradients, expected(getattr(torch, dtype)), strict=True):
                assert torch.equal(gradient, whole)
            assert torch.equal(sums, in_a_tree([sums_of(n) for n in range(MICRO_BATCHES)]))
        # A ring sends this much; each bucket is filled up to a multiple of the processes.
        ring = 2 * (1 - 1 / processes) * numbers
        buckets = numbers // SMALL_BUCKET + 2
        assert ring <= content["sent"] <= ring + 2 * buckets * processes
        # No second copy of the gradients: one bucket, and half of one.
        assert content["kept"] <= 1.5 * (SMALL_BUCKET + 2 * processes)


def test_buckets_contain_each_number_once_and_begin_with_the_last_parameter():
    parameters = [torch.zeros(shape) for shape in SHAPES]
    buckets = buckets_of(parameters, SMALL_BUCKET)
    seen = torch.zeros(sum(map(torch.numel, parameters)))
    starts = torch.tensor([0, *map(torch.numel, parameters)]).cumsum(0)
    for pieces in buckets:
        assert 0 < sum(piece.stop - piece.start for piece in pieces) <= SMALL_BUCKET
        for piece in pieces:
            start = starts[piece.parameter]
            seen[start + piece.start : start + piece.stop] += 1
    assert (seen == 1).all()
    order = [piece.parameter for pieces in buckets for piece in pieces]
    assert order == sorted(order, reverse=True)


def test_parameters_of_different_types_are_in_different_buckets():
    parameters = [torch.zeros(3), torch.zeros(3, dtype=torch.bfloat16), torch.zeros(3)]
    assert [len(pieces) for pieces in buckets_of(parameters, 100)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("micro_batches", "processes", "fixed"),
    [(1, 1, True), (2, 4, True), (3, 2, False), (2, 3, False)],
)
def test_only_powers_of_two_have_a_fixed_order(micro_batches, processes, fixed):
    assert has_fixed_order(micro_batches, processes) == fixed


def test_ddp_does_not_keep_a_second_copy_of_the_gradients():
    """The wrapper that Lightning puts around a module has buckets for all gradients."""
    trainer = Trainer(accelerator="cpu", devices=2, logger=False, enable_checkpointing=False)
    without_ddp_wrapper(trainer)
    module = LightningModule()
    trainer.strategy.connect(module)
    trainer.strategy.configure_ddp()
    assert trainer.strategy.model is module


@pytest.mark.slow
def test_fast_reduction_equals_exact_reduction_but_for_rounding(
    toy, nmt, train_on, training_state, here
):
    options = [*toy, "batching.micro_batches=4", "trainer.max_steps=12"]
    assert nmt("train", *options, "run=exact").code == 0
    assert nmt("train", *options, "trainer.reduction=fast", "run=fast").code == 0
    train_on(2, *options, "trainer.reduction=fast", "run=two")
    exact, *others = (training_state(Path(run))["weights"] for run in ("exact", "fast", "two"))
    for weights in others:
        torch.testing.assert_close(weights, exact, rtol=1e-3, atol=1e-5)
    nmt("train", *options, "run=fast").refused("trainer.reduction: fast -> exact")
