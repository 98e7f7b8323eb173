"""The keys and values of earlier positions, which a search computes once.

Shapes: B batch, S source positions, D d_model, H heads, W d_k or d_v, K hypotheses per sentence.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.model.layers import KeysValues

MIN_ROOM = 16  # positions


@dataclass
class DecoderCache:
    """The state of incremental decoding with K hypotheses per sentence.

    Each position adds K columns to the keys and values of self-attention. Columns never move,
    because copying them would be slow: reordering the beam only reorders the rows of `ancestors`,
    which all layers and heads share.
    """

    past: list[KeysValues]
    """Each layer's self-attention keys and values, [B, H, columns, W], with spare columns."""

    memory: list[KeysValues]
    """Each layer's cross-attention keys and values, [B, H, S, W], shared by the K hypotheses."""

    mask: Tensor
    """Added to the scores of source positions, [B, 1, 1, S]: 0 or -inf."""

    ancestors: Tensor
    """Added to the scores of columns, [B, 1, K, columns]: 0 in a hypothesis's past, else -inf."""

    window: int | None
    """r: a position sees only the last r positions (section 4). None: all."""

    states: list[Tensor]
    """The states of the decoder's recurrent layers, instead of `past`, each [B, K, D]."""

    length: int = 0
    """The number of positions decoded so far."""

    @property
    def seen(self) -> slice:
        """The columns that the next position sees, including its own."""
        hypotheses = self.ancestors.shape[2]
        end = self.length + 1
        # Columns before the window stay in memory, because columns never move.
        begin = 0 if self.window is None else max(end - self.window, 0)
        return slice(begin * hypotheses, end * hypotheses)

    def visible(self) -> Tensor | None:
        """The part of `ancestors` for the columns in `seen`.

        None for a single hypothesis, which sees all of them.
        """
        hypotheses, columns = self.ancestors.shape[2:]
        # A recurrent decoder has states instead of columns and needs no room.
        if self.past and self.seen.stop > columns:
            self.make_room()
        return self.ancestors[..., self.seen] if hypotheses > 1 else None

    def make_room(self) -> None:
        """Double the columns, adding at least 16 positions, so that few steps copy all of them."""
        batch, _, hypotheses, columns = self.ancestors.shape
        room = max(columns, MIN_ROOM * hypotheses)
        padding = (0, 0, 0, room)
        self.past = [(F.pad(k, padding), F.pad(v, padding)) for k, v in self.past]
        # At future positions, hypothesis k sees column k.
        # Created on the device: a copy from the CPU would wait for the device.
        square = self.ancestors.new_full((hypotheses, hypotheses), -torch.inf)
        diagonal = square.fill_diagonal_(0)
        future = diagonal.repeat(1, room // hypotheses).expand(batch, 1, -1, -1)
        self.ancestors = torch.cat((self.ancestors, future), dim=3)

    def append(self, layer: int, k_BHKW: Tensor, v_BHKW: Tensor) -> KeysValues:
        """Add the next position to a layer's past and return the keys and values that it sees."""
        end = self.seen.stop
        columns = slice(end - k_BHKW.shape[2], end)
        k, v = self.past[layer]
        k[:, :, columns] = k_BHKW
        v[:, :, columns] = v_BHKW
        return k[:, :, self.seen], v[:, :, self.seen]

    def update(self, layer: int, forget_BKD: Tensor, new_BKD: Tensor) -> Tensor:
        """Compute a recurrent layer's next state."""
        state = forget_BKD * self.states[layer] + (1 - forget_BKD) * new_BKD
        self.states[layer] = state
        return state

    def reorder(self, parents_BK: Tensor) -> None:
        """Make hypothesis k continue hypothesis parents[k]."""
        self.states = [
            state.gather(1, parents_BK[:, :, None].expand_as(state)) for state in self.states
        ]
        filled = self.length * parents_BK.shape[1]
        # Only filled columns change: at future positions, hypothesis k sees its own column k,
        # whichever hypothesis it continues. This runs after a step, so the latest position counts
        # as filled.
        past = self.ancestors[..., :filled]
        # `gather` makes a new tensor, so no row is overwritten before another hypothesis has read
        # it.
        past.copy_(past.gather(2, parents_BK[:, None, :, None].expand_as(past)))

    def select(self, sentences: Tensor) -> "DecoderCache":
        """A cache that contains only the sentences at these rows of the batch."""

        def rows(layers: list[KeysValues]) -> list[KeysValues]:
            return [(k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in layers]

        return DecoderCache(
            past=rows(self.past),
            memory=rows(self.memory),
            mask=self.mask[sentences],
            ancestors=self.ancestors[sentences],
            window=self.window,
            states=[state[sentences] for state in self.states],
            length=self.length,
        )
