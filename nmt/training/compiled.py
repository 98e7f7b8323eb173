"""The Transformer's training forward, compiled by torch.compile.

Shapes: B sentences, S source positions, T target positions, D d_model.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import PAD
from nmt.errors import NMTError
from nmt.model import Transformer

MULTIPLE = 8
"""Widths are multiples of it."""


@contextmanager
def same_sums(device: torch.device) -> Iterator[None]:
    """Without this, compiled threads on a processor add up the embeddings' gradients in any order."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(before or device.type == "cpu")
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


class CompiledHidden:
    """`Transformer.decoder_states` by one graph for all shapes, which every process compiles from the same example.

    (Of additive attention there are three, for small tables of scores are reduced by other kernels.)

    A graph that was made for the first batch at hand would round otherwise than the one that another start makes.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.compiled = torch.compile(model.decoder_states, dynamic=True, fullgraph=True)

    def widen(self, tokens: Tensor) -> Tensor:
        """Padding up to one of few widths, so that freed memory fits again.

        Two rows at least, for torch makes graphs of their own for one.
        """
        rows, width = tokens.shape
        wider = min(-(-width // MULTIPLE) * MULTIPLE, self.model.config.max_positions)
        tokens = torch.cat((tokens, tokens)) if rows == 1 else tokens
        return F.pad(tokens, (0, max(wider - width, 0)), value=PAD)

    def __call__(self, source_BS: Tensor, target_BT: Tensor, padded: bool = True) -> Tensor:
        """The decoder's hidden states, [B, T, D]; the one graph has a mask, `padded` or not."""
        rows, width = target_BT.shape
        with same_sums(target_BT.device):
            hidden: Tensor = self.compiled(self.widen(source_BS), self.widen(target_BT))
        return hidden[:rows, :width]

    def compile(self, device: torch.device) -> None:
        """Compile forward and backward now; NMTError where that needs something that is not installed."""
        source, target = (torch.ones(64, width, dtype=torch.int64, device=device) for width in (24, 32))
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        try:
            with same_sums(device):
                torch.autograd.grad(self(source, target).sum(), parameters, allow_unused=True)
        except RuntimeError as error:
            reason = " ".join(str(error).partition("Set TORCH")[0].split())[:200]
            raise NMTError(
                f"compile=true: torch.compile failed ({reason}): it needs a C++ compiler on a processor and Triton on "
                "a GPU; install what is missing, or leave compile=false"
            ) from error
