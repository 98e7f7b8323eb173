"""The keys and values of earlier positions, which a search computes once.

Shapes: B batch, S source positions, D d_model, H heads, Q d_k, V d_v, K hypotheses per sentence.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.model.layers import KeysValues

MIN_ROOM = 16
"""Positions for which the first step makes room; most sentences need at most one or two copies."""


@dataclass
class DecoderCache:
    """The state of incremental decoding with K hypotheses per sentence.

    For self-attention, each layer computes a key and a value for every position of every
    hypothesis. It stores those of position p and hypothesis k in column p * K + k. Columns never
    move, because copying them would be slow. When the beam is reordered, hypothesis k may continue
    another hypothesis, so the columns of its earlier tokens are no longer those with its number:
    `ancestor_mask` says which ones they are. All layers and heads share this mask.

    For example, with K = 2, columns 0 and 1 belong to position 0, and columns 2 and 3 to position
    1. If both hypotheses continued hypothesis 0 after position 0, then hypothesis 0 sees columns 0
    and 2, and hypothesis 1 sees columns 0 and 3.
    """

    target_keys_values: list[KeysValues]
    """For self-attention in each layer, [B, H, columns, Q] and [B, H, columns, V].

    There may be room for more positions. The list is empty if the decoder is recurrent.
    """

    source_keys_values: list[KeysValues]
    """For cross-attention in each layer, [B, H, S, Q] and [B, H, S, V].

    The K hypotheses share them.
    """

    source_mask: Tensor
    """Added to the scores of source positions, [B, 1, 1, S]: 0 or, where hidden, -inf."""

    ancestor_mask: Tensor
    """Added to the scores of columns, [B, 1, K, columns]: 0 for its own tokens, else -inf."""

    window: int | None
    """r: a position sees only the last r positions (section 4). None: all."""

    states: list[Tensor]
    """Of the decoder's recurrent layers, instead of `target_keys_values`, [B, K, D]."""

    length: int = 0
    """The number of positions decoded so far."""

    @property
    def visible(self) -> slice:
        """The columns of the next position and of the earlier ones that its window contains."""
        hypotheses = self.ancestor_mask.shape[2]
        end = self.length + 1
        # Columns before the window stay in memory, because columns never move.
        begin = 0 if self.window is None else max(end - self.window, 0)
        return slice(begin * hypotheses, end * hypotheses)

    def begin_step(self) -> Tensor | None:
        """Make room for the next position, and return `ancestor_mask` for the visible columns.

        None for a single hypothesis, which sees all of them.
        """
        hypotheses, columns = self.ancestor_mask.shape[2:]
        # A recurrent decoder has states instead of columns and needs no room.
        if self.target_keys_values and self.visible.stop > columns:
            self.add_columns()
        return self.ancestor_mask[..., self.visible] if hypotheses > 1 else None

    def add_columns(self) -> None:
        """Double the columns, adding at least 16 positions, so that few steps copy all of them."""
        batch, _, hypotheses, columns = self.ancestor_mask.shape
        added = max(columns, MIN_ROOM * hypotheses)
        padding = (0, 0, 0, added)  # none for the last dimension, then after the columns
        self.target_keys_values = [
            (F.pad(k, padding), F.pad(v, padding)) for k, v in self.target_keys_values
        ]
        # Whatever hypothesis k will continue, its own column at a future position is the k-th of
        # the K.
        # Made on the device, because a copy from the CPU would wait for it.
        mask_KK = self.ancestor_mask.new_full((hypotheses, hypotheses), -torch.inf)
        mask_KK.fill_diagonal_(0)
        positions = added // hypotheses
        future_mask = mask_KK.repeat(1, positions).expand(batch, 1, -1, -1)
        self.ancestor_mask = torch.cat((self.ancestor_mask, future_mask), dim=3)

    def append(self, layer: int, k_BHKQ: Tensor, v_BHKV: Tensor) -> KeysValues:
        """Store a layer's keys and values of the next position, and return all visible ones."""
        end = self.visible.stop
        columns = slice(end - k_BHKQ.shape[2], end)
        k, v = self.target_keys_values[layer]
        k[:, :, columns] = k_BHKQ
        v[:, :, columns] = v_BHKV
        return k[:, :, self.visible], v[:, :, self.visible]

    def update(self, layer: int, forget_BKD: Tensor, new_BKD: Tensor) -> Tensor:
        """Compute a recurrent layer's next state."""
        state = forget_BKD * self.states[layer] + (1 - forget_BKD) * new_BKD
        self.states[layer] = state
        return state

    def reorder(self, parents_BK: Tensor) -> None:
        """Make hypothesis k continue hypothesis parents[k] of its sentence.

        Call it between two steps, once the search has chosen the hypotheses that it extends.
        """
        self.states = [
            state.gather(1, parents_BK[:, :, None].expand_as(state)) for state in self.states
        ]
        # Hypothesis k sees the columns that its parent saw. Only those of positions so far: at a
        # future position, it sees its own column, as `add_columns` has set.
        columns = self.length * parents_BK.shape[1]
        mask = self.ancestor_mask[..., :columns]
        indices = parents_BK[:, None, :, None].expand_as(mask)
        # `gather` makes a new tensor, so no row is overwritten before another hypothesis has read
        # it.
        mask.copy_(mask.gather(2, indices))

    def select(self, sentences: Tensor) -> "DecoderCache":
        """A cache that contains only the sentences at these rows of the batch."""

        def rows(layers: list[KeysValues]) -> list[KeysValues]:
            return [(k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in layers]

        return DecoderCache(
            target_keys_values=rows(self.target_keys_values),
            source_keys_values=rows(self.source_keys_values),
            source_mask=self.source_mask[sentences],
            ancestor_mask=self.ancestor_mask[sentences],
            window=self.window,
            states=[state[sentences] for state in self.states],
            length=self.length,
        )
