"""Add the gradients of an update's micro-batches in an order that does not depend on the processes.

The order is a tree: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) for eight micro-batches. Each process
computes neighboring micro-batches, so it adds whole subtrees by itself. Then the processes exchange
their sums: first each with its neighbor, then with the process two away, and so on. Each sum has
two terms, and a + b equals b + a, so every process gets the same bits as a single process.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from nmt.compat import add_to_each, copy_to_each
from nmt.training.exchange import exchange

BUCKET_NUMBERS = 2**24
"""The most numbers that are exchanged at once: 64 MB in float32.

Larger buckets would be complete later and need larger copies, smaller ones more exchanges.
"""


def is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def has_fixed_order(micro_batches: int, processes: int) -> bool:
    """Whether processes can add their gradients in the order of one process.

    Each of them computes `micro_batches` of an update.
    """
    return is_power_of_two(micro_batches) and is_power_of_two(processes)


@dataclass
class Piece:
    """A part of a parameter's gradient, seen as a vector."""

    parameter: int
    """The parameter's index in the list of parameters."""
    start: int
    stop: int


@dataclass
class Bucket:
    """Pieces of gradients that are exchanged at once."""

    pieces: list[Piece]
    """The pieces in the order in which the backward pass computes them."""
    missing: set[int]
    """The parameters whose gradients this backward pass has not computed yet."""

    def begun(self) -> list[int]:
        """The parameters whose first piece is in this bucket."""
        return [piece.parameter for piece in self.pieces if piece.start == 0]


def buckets_of(parameters: Sequence[Tensor], most: int) -> list[list[Piece]]:
    """Divide parameters into buckets of at most `most` numbers of one type.

    The last parameter comes first, because the backward pass computes its gradient first.
    """
    buckets: list[list[Piece]] = []
    room = 0
    dtype = None
    for index in reversed(range(len(parameters))):
        start = 0
        numbers = parameters[index].numel()
        # Large matrices span buckets, small vectors share one: few exchanges of a bounded size.
        while start < numbers:
            # A bucket is copied into one flat vector, so all its numbers need the same type.
            if room == 0 or parameters[index].dtype != dtype:
                buckets.append([])
                room = most
                dtype = parameters[index].dtype
            stop = min(start + room, numbers)
            buckets[-1].append(Piece(index, start, stop))
            room -= stop - start
            start = stop
    return buckets


@dataclass
class Subtree:
    """The sums over neighboring micro-batches of this process."""

    micro_batches: int
    """The number of micro-batches, a power of two."""
    gradients: list[Tensor | None]
    """One per parameter; None for a parameter that got no gradient."""
    sums: Tensor
    """The vector that is added along with the gradients."""


class FixedOrderSum:
    """The sum over the micro-batches of an update, with the same bits on 1, 2, 4, ... processes.

    Call `begin` before the backward pass of a micro-batch and `end` after it.

    PyTorch adds the gradients of micro-batch 2 to those of micro-batch 1, those of 4 to those of 3,
    and so on. This class moves these sums of pairs away, so that the next pair begins without
    gradients, and adds them in the order of the tree. It exchanges the process's total bucket by
    bucket, during the backward pass of the last micro-batch, as soon as the gradients of a bucket
    are complete. On a GPU, the exchange runs beside the rest of the backward pass.
    """

    def __init__(self, module: nn.Module, micro_batches: int, others: int) -> None:
        """`micro_batches` is the number of this process's micro-batches in an update.

        `others` is the length of the vector that `end` adds along with the gradients.
        """
        self.parameters = [x for x in module.parameters() if x.requires_grad]
        self.micro_batches = micro_batches
        self.number = 0  # of the micro-batch, from 1
        # The subtrees that wait for their neighbors, from large to small: after ten micro-batches,
        # one of eight and one of two.
        self.subtrees: list[Subtree] = []
        self.processes = dist.get_world_size() if dist.is_initialized() else 1
        self.buckets: list[Bucket] = []
        self.sent = 0  # buckets exchanged in this update
        # For each type, a vector that all exchanges use in turn.
        self.vectors: dict[torch.dtype, Tensor] = {}
        self.stream: torch.cuda.Stream | None = None
        if self.processes > 1:
            self.prepare_exchange(others)

    def prepare_exchange(self, others: int) -> None:
        device = self.parameters[0].device
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)
        for pieces in buckets_of(self.parameters, BUCKET_NUMBERS):
            self.buckets.append(Bucket(pieces, set()))
            numbers = sum(piece.stop - piece.start for piece in pieces)
            self.reserve_vector(numbers, self.parameters[pieces[0].parameter])
        self.reserve_vector(others, torch.empty(0, device=device))  # they are always float32
        # These hooks run when a gradient is final for this backward pass, so its exchange can begin
        # while earlier layers still compute theirs.
        for index, parameter in enumerate(self.parameters):
            parameter.register_post_accumulate_grad_hook(self.hook(index))

    def reserve_vector(self, numbers: int, like: Tensor) -> None:
        """Ensure that the vector for the type of `like` suffices to exchange `numbers` numbers."""
        padded = self.padded_length(numbers)
        buffer = padded // 2  # what `exchange` needs besides the numbers
        vector = self.vectors.get(like.dtype)
        if vector is None or len(vector) < padded + buffer:
            self.vectors[like.dtype] = like.new_empty(padded + buffer)

    def padded_length(self, numbers: int) -> int:
        """The next multiple of the number of processes, as `exchange` needs."""
        return math.ceil(numbers / self.processes) * self.processes

    def hook(self, index: int) -> Callable[[Tensor], None]:
        """The hook that PyTorch calls after it has added to the gradient of a parameter."""

        def computed(parameter: Tensor) -> None:
            if self.is_last:
                self.complete(index)

        return computed

    @property
    def is_last(self) -> bool:
        return self.number == self.micro_batches

    def begin(self, number: int) -> None:
        """Expect the backward pass of this process's micro-batch `number`, counted from 1."""
        self.number = number
        self.sent = 0
        if self.is_last:
            for bucket in self.buckets:
                bucket.missing = {piece.parameter for piece in bucket.pieces}

    def end(self, sums: Tensor) -> None:
        """Add the gradients of the micro-batch that has begun, and numbers of it.

        `sums` are these numbers, added to those of the micro-batch before, as PyTorch adds
        gradients. What becomes of the gradients and of `sums` depends on the micro-batch:

        - after the last, they are the totals of all micro-batches of all processes;
        - after another with an even number, they are in the tree: None, and zeros;
        - after one with an odd number, they stay as they are, for the next one to add to them.
        """
        if self.is_last:
            self.finish(sums)
        elif self.number % 2 == 0:
            self.push(sums)

    def finish(self, sums: Tensor) -> None:
        """Turn the gradients and `sums` of the last pair of micro-batches into the totals."""
        # The smallest subtree is the neighbor of the last pair, and is added first.
        for subtree in reversed(self.subtrees):
            sums += subtree.sums
        if self.processes == 1:
            self.add_subtrees(range(len(self.parameters)))
        else:
            # The backward pass has exchanged the buckets that it completed. The rest have
            # parameters that got no gradient.
            self.exchange_up_to(len(self.buckets))
            self.exchange_parts([sums])
        # Frees their gradients before the optimizer needs memory.
        self.subtrees.clear()
        if self.stream:
            # The optimizer must not read gradients that the other stream is still writing.
            torch.cuda.current_stream().wait_stream(self.stream)

    def push(self, sums: Tensor) -> None:
        """Move the sums of the last two micro-batches into the tree and reset them."""
        # Moved, not copied: the parameters get new gradients in the next backward pass.
        gradients = [parameter.grad for parameter in self.parameters]
        subtree = Subtree(micro_batches=2, gradients=gradients, sums=sums.clone())
        # Two subtrees of the same size become one, as in a binary counter.
        while self.subtrees and self.subtrees[-1].micro_batches == subtree.micro_batches:
            neighbor = self.subtrees.pop()
            add_gradients(subtree.gradients, neighbor.gradients)
            subtree.sums += neighbor.sums
            subtree.micro_batches *= 2
        self.subtrees.append(subtree)
        sums.zero_()
        for parameter in self.parameters:
            parameter.grad = None

    def add_subtrees(self, indices: Sequence[int]) -> None:
        """Add the gradients of the earlier micro-batches to the last ones, for these parameters."""
        # From the smallest to the largest, as in `finish`.
        for subtree in reversed(self.subtrees):
            totals = [self.parameters[index].grad for index in indices]
            add_gradients(totals, [subtree.gradients[index] for index in indices])

    def complete(self, index: int) -> None:
        """Note that a gradient is complete, and exchange the buckets that are complete now."""
        for bucket in self.buckets:
            bucket.missing.discard(index)
        ready = self.sent
        # In one order, so that all processes exchange the same buckets.
        while ready < len(self.buckets) and not self.buckets[ready].missing:
            ready += 1
        self.exchange_up_to(ready)

    def exchange_up_to(self, stop: int) -> None:
        for number in range(self.sent, stop):
            self.exchange_bucket(number)
        self.sent = max(self.sent, stop)

    def exchange_bucket(self, number: int) -> None:
        bucket = self.buckets[number]
        # Only for parameters that begin in this bucket: a parameter that continues from the bucket
        # before already has its sum.
        self.add_subtrees(bucket.begun())
        parts = []
        for piece in bucket.pieces:
            gradient = self.parameters[piece.parameter].grad
            # All processes skip the same ones: they run the same model on each micro-batch.
            if gradient is not None:
                parts.append(gradient.view(-1)[piece.start : piece.stop])
        if parts:
            self.exchange_parts(parts)

    def exchange_parts(self, parts: list[Tensor]) -> None:
        """Sum parts of gradients over the processes, in place."""
        lengths = [len(part) for part in parts]
        numbers = sum(lengths)
        padded = self.padded_length(numbers)
        # Reused by all buckets: the stream exchanges them one after another.
        vector = self.vectors[parts[0].dtype]
        places = list(vector[:numbers].split(lengths))
        with self.beside():
            # As one vector: many small NCCL operations in a group are slow, more than 256 unsafe.
            copy_to_each(places, parts)
            # The padding only makes the length divisible; its sums are never read.
            vector[numbers:padded].zero_()
            exchange(vector[:padded], buffer=vector[padded:])
            copy_to_each(parts, places)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run a block in parallel with the backward pass, after the work queued so far."""
        if self.stream is None:
            yield
            return
        # The gradients of this bucket are computed on the current stream.
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            yield


def add_gradients(totals: Sequence[Tensor | None], others: Sequence[Tensor | None]) -> None:
    """Add gradients in place; a parameter that got no gradient has none in any micro-batch."""
    present_totals = []
    present_others = []
    for total, other in zip(totals, others, strict=True):
        if total is not None and other is not None:
            present_totals.append(total)
            present_others.append(other)
    if present_totals:
        add_to_each(present_totals, present_others)
