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
"""The maximum count of numbers to exchange at once: 64 MB in float32."""


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

    PyTorch adds the gradients of every second micro-batch to those of the micro-batch before it.
    This class adds the sums of pairs, and exchanges the total bucket by bucket, as soon as the last
    micro-batch has completed the gradients of a bucket. On a GPU, the exchange runs in parallel
    with the rest of the backward pass.

    Call `begin` before the backward pass of a micro-batch and `end` after it.
    """

    def __init__(self, module: nn.Module, micro_batches: int, others: int) -> None:
        """`micro_batches` is the number of this process's micro-batches in an update.

        `others` is the length of the vector that `end` adds along with the gradients.
        """
        self.parameters = [x for x in module.parameters() if x.requires_grad]
        self.micro_batches = micro_batches
        self.number = 0  # of the current micro-batch, counted from 1
        # The subtrees that wait for their neighbors, from large to small.
        self.subtrees: list[Subtree] = []
        self.processes = dist.get_world_size() if dist.is_initialized() else 1
        self.buckets: list[Bucket] = []
        self.sent = 0  # buckets exchanged in this update
        self.flat: dict[torch.dtype, Tensor] = {}  # vectors that all buckets of a type use in turn
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
            self.make_room(numbers, self.parameters[pieces[0].parameter])
        self.make_room(others, torch.empty(0, device=device))  # they are always float32
        # These hooks run when a gradient is final for this backward pass, so its exchange can begin
        # while earlier layers still compute theirs.
        for index, parameter in enumerate(self.parameters):
            parameter.register_post_accumulate_grad_hook(self.hook(index))

    def make_room(self, numbers: int, like: Tensor) -> None:
        """Make a vector for `numbers` numbers and for half of them, as `exchange` needs."""
        whole = self.divisible(numbers)
        length = whole + whole // 2
        kept = self.flat.get(like.dtype)
        if kept is None or len(kept) < length:
            self.flat[like.dtype] = like.new_empty(length)

    def divisible(self, numbers: int) -> int:
        """The next multiple of the number of processes."""
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
        """Add the gradients of a micro-batch, and `sums`, which are added in the same order.

        After the last micro-batch, the gradients and `sums` are the totals of all processes; until
        then, after each second micro-batch, they are empty and zero.
        """
        if not self.is_last:
            if self.number % 2 == 0:
                self.push(sums)
            return
        for subtree in reversed(self.subtrees):  # as in add_subtrees
            sums += subtree.sums
        # Buckets with parameters that got no gradient are not complete yet.
        self.exchange_up_to(len(self.buckets))
        if self.processes > 1:
            self.exchange_parts([sums])
        else:
            self.add_subtrees(range(len(self.parameters)))
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
        numbers = sum(map(len, parts))
        whole = self.divisible(numbers)
        # Reused by all buckets: the stream exchanges them one after another.
        flat = self.flat[parts[0].dtype]
        lengths = [len(part) for part in parts]
        places = list(flat[:numbers].split(lengths))
        with self.beside():
            # As one vector: many small NCCL operations in a group are slow, more than 256 unsafe.
            copy_to_each(places, parts)
            # The padding only makes the length divisible; its sums are never read.
            flat[numbers:whole].zero_()
            exchange(flat[:whole], flat[whole:])
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
