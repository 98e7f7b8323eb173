"""Sum a vector over 2^n processes, in the order of a tree of neighbors.

In each round of the exchange, a process sends half of what it has and adds the other half
(recursive halving). At the end it has the total of one part of the numbers, and the same rounds in
reverse order bring the other parts. For n processes, this moves 2 (1 - 1 / n) times the size of the
gradients, as a ring does. Only 1 / n of the gradients goes the longest way, between machines.
"""

from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor


def swap(sent: Tensor, received: Tensor, other: int) -> None:
    """Send a tensor to another process and receive one from it."""
    send = dist.P2POp(dist.isend, sent, other)
    receive = dist.P2POp(dist.irecv, received, other)
    # As a batch: with NCCL, two processes that both send first would wait for one another.
    for work in dist.batch_isend_irecv([send, receive]):
        work.wait()


@dataclass
class Round:
    """A round of an exchange between two processes."""

    other: int
    """The other process."""
    ours: int
    """The start of the part that this process adds up."""
    theirs: int
    """The start of the part that the other process adds up."""


def exchange(numbers: Tensor, buffer: Tensor) -> None:
    """Sum a vector over 2^n processes in place; all processes get the same bits.

    The length must be a multiple of 2^n; `buffer` has room for half of it. On a GPU, this returns
    before the exchange has ended, as any kernel does.
    """
    rank = dist.get_rank()
    processes = dist.get_world_size()
    start = 0
    size = len(numbers)
    rounds: list[Round] = []
    distance = 1
    while distance < processes:
        size //= 2
        lower = start
        upper = start + size
        # The processes that differ in one bit of their numbers: neighbors first, as in the tree.
        other = rank ^ distance
        # Of two processes, the one with the lower number gets the lower half.
        if rank < other:
            this_round = Round(other, ours=lower, theirs=upper)
        else:
            this_round = Round(other, ours=upper, theirs=lower)
        rounds.append(this_round)
        start = this_round.ours
        # The first round fills the buffer, with half of the numbers; later rounds use less of it.
        received = buffer[:size]
        swap(numbers[this_round.theirs :][:size], received, other)
        # One process computes a + b and the other b + a for a number, which are the same bits.
        numbers[start : start + size] += received
        distance *= 2
    # Now this process has the total of `size` numbers. Each round backward doubles them.
    for earlier in reversed(rounds):
        ours = numbers[earlier.ours :][:size]
        theirs = numbers[earlier.theirs :][:size]
        swap(ours, theirs, earlier.other)
        size *= 2
