"""The Transformer (section 3, figure 1).

Shapes: B batch, T target positions, S source positions, D d_model, N vocabulary, H heads, W d_k or d_v,
K hypotheses per sentence, as in the search (in layers.py, K is d_k).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import EOS, PAD, ModelConfig
from nmt.kernels import Compiler, Linear
from nmt.model.layers import DecoderLayer, Embedding, EncoderLayer, KeysValues, neighborhood, random_matrix


@dataclass
class DecoderCache:
    """The state of incremental decoding with K hypotheses per sentence.

    Each position adds K columns to the keys and values of self-attention. Columns never move, because copying them
    would be slow: reordering the beam only reorders the rows of `ancestors`, which all layers and heads share.
    """

    past: list[KeysValues]  # for self-attention in each layer, [B, H, columns, ...], with room for more columns
    memory: list[KeysValues]  # for cross-attention in each layer, shared by the K hypotheses
    mask: Tensor  # added to the scores of source positions, [B, 1, 1, S]: 0 or -inf
    ancestors: Tensor  # added to the scores of columns, [B, 1, K, columns]: 0 in a hypothesis's past, else -inf
    window: int | None  # r: a position sees only the last r positions (section 4); None: all
    states: list[Tensor]  # of the decoder's recurrent layers instead of `past`, [B, K, D]
    length: int = 0  # positions so far

    @property
    def seen(self) -> slice:
        """The columns that the next position sees, including its own."""
        end, hypotheses = self.length + 1, self.ancestors.shape[2]
        return slice(max(end - (self.window or end), 0) * hypotheses, end * hypotheses)

    def visible(self) -> Tensor | None:
        """The part of `ancestors` for the columns in `seen`; None for a single hypothesis, which sees all of them."""
        batch, _, hypotheses, columns = self.ancestors.shape
        if self.past and self.seen.stop > columns:
            # Double the space, adding at least 16 positions, so that few steps have to copy all columns.
            room = max(columns, 16 * hypotheses)
            self.past = [(F.pad(k, (0, 0, 0, room)), F.pad(v, (0, 0, 0, room))) for k, v in self.past]
            # At future positions, hypothesis k sees column k.
            # Made on the device, because a copy from the CPU would wait for it.
            square = self.ancestors.new_full((hypotheses, hypotheses), -torch.inf)
            diagonal = square.fill_diagonal_(0)
            future = diagonal.repeat(1, room // hypotheses).expand(batch, 1, -1, -1)
            self.ancestors = torch.cat((self.ancestors, future), dim=3)
        return self.ancestors[..., self.seen] if hypotheses > 1 else None

    def append(self, layer: int, k_BHKW: Tensor, v_BHKW: Tensor) -> KeysValues:
        """Add the next position to a layer's past and return the keys and values that it sees."""
        columns = slice(self.seen.stop - k_BHKW.shape[2], self.seen.stop)
        k, v = self.past[layer]
        k[:, :, columns], v[:, :, columns] = k_BHKW, v_BHKW
        return k[:, :, self.seen], v[:, :, self.seen]

    def update(self, layer: int, forget_BKD: Tensor, new_BKD: Tensor) -> Tensor:
        """Compute a recurrent layer's next state."""
        self.states[layer] = forget_BKD * self.states[layer] + (1 - forget_BKD) * new_BKD
        return self.states[layer]

    def reorder(self, parents_BK: Tensor) -> None:
        """Make hypothesis k continue hypothesis parents[k]."""
        self.states = [state.gather(1, parents_BK[:, :, None].expand_as(state)) for state in self.states]
        past = self.ancestors[..., : self.length * parents_BK.shape[1]]
        past.copy_(past.gather(2, parents_BK[:, None, :, None].expand_as(past)))

    def select(self, sentences: Tensor) -> "DecoderCache":
        """A cache that contains only the given sentences."""

        def rows(layers: list[KeysValues]) -> list[KeysValues]:
            return [(k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in layers]

        masks, states = (self.mask[sentences], self.ancestors[sentences]), [state[sentences] for state in self.states]
        return DecoderCache(rows(self.past), rows(self.memory), *masks, self.window, states, self.length)


class Transformer(nn.Module):
    """The encoder-decoder (section 3, figure 1), with a joint vocabulary or one vocabulary per side."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config, self.vocabulary_size = config, vocabulary_size
        # Compiles the layers for training steps. The search, whose arguments change with each step, is not compiled.
        self.compiler: Compiler | None = None
        self.source_embedding = Embedding(config, config.source_vocabulary_size or vocabulary_size)
        self.target_embedding = Embedding(config, vocabulary_size)
        self.encoder_layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        # A post-norm layer already ends in a norm; only a pre-norm stack needs one on top.
        pre_norm = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if pre_norm else nn.Identity()
        self.output = Linear(config.d_model, vocabulary_size, bias=False)
        self.output.weight = random_matrix(vocabulary_size, config.d_model)
        if config.output_bias:
            self.output.bias = nn.Parameter(torch.zeros(vocabulary_size))
        # Section 3.4: one matrix for both embeddings and the linear map before the softmax.
        if config.tied_embeddings and config.source_vocabulary_size is None:
            self.target_embedding.weight = self.source_embedding.weight
        if config.tied_embeddings:
            self.output.weight = self.target_embedding.weight

    def real(self, source_BS: Tensor) -> Tensor:
        """True at source positions other than padding and, without `source_end`, end symbols: [B, 1, 1, S]."""
        real_BS = source_BS != PAD
        if not self.config.source_end:
            real_BS &= source_BS != EOS
            real_BS[:, 0] = True  # keep an empty source's end symbol, because an empty softmax is NaN
        return real_BS[:, None, None, :]

    def cross_mask(self, source_BS: Tensor, padded: bool = True) -> Tensor | None:
        """True where the decoder may attend to source positions, [B, 1, 1, S]; None if it may attend to all.

        Without a mask, torch can use its fastest kernels.
        """
        return self.real(source_BS) if padded or not self.config.source_end else None

    def source_mask(self, source_BS: Tensor, padded: bool = True) -> Tensor | None:
        """Like `cross_mask`, but for the encoder: [B, 1, S, S] if self-attention is restricted (section 4)."""
        real = self.cross_mask(source_BS, padded)
        if self.config.attention_window is None:
            return real
        near_SS = neighborhood(source_BS.shape[1], self.config.attention_window, source_BS.device)
        if real is None:
            return near_SS
        # Padding far past a sentence's end sees no real token: let it see itself, because an empty softmax is NaN.
        return near_SS & (real | torch.eye(len(near_SS), dtype=torch.bool, device=near_SS.device))

    def training_compiler(self) -> Compiler | None:
        """The compiler in a training step, otherwise None."""
        return self.compiler if self.training and torch.is_grad_enabled() else None

    def run(self, layer: nn.Module, x: Tensor, *arguments: Any) -> Tensor:
        """The output of a layer, computed by its compiled form in a training step."""
        compiler = self.training_compiler()
        if compiler is None or len(x) == 1:  # the compiler would make further kernels for a single sentence
            return layer(x, *arguments)  # type: ignore[no-any-return]
        return compiler.compiled(type(layer).forward)(layer, x, *arguments)  # type: ignore[no-any-return]

    def encode(self, source_BS: Tensor, padded: bool = True) -> Tensor:
        """Encode source tokens, including the end symbol, into memory [B, S, D].

        `padded=False` promises that there is no padding; checking would have to wait for the device.
        """
        mask = self.source_mask(source_BS, padded)
        x_BSD = self.source_embedding(source_BS)
        for layer in self.encoder_layers:
            x_BSD = self.run(layer, x_BSD, mask)
        return self.encoder_norm(x_BSD)  # type: ignore[no-any-return]

    def decode(self, target_BT: Tensor, memory_BSD: Tensor, source_BS: Tensor, padded: bool = True) -> Tensor:
        """From a start symbol and target tokens, compute decoder states that predict the next tokens, [B, T, D]."""
        mask, window = self.cross_mask(source_BS, padded), self.config.attention_window
        past = None if window is None else neighborhood(target_BT.shape[1], window, target_BT.device, causal=True)
        x_BTD = self.target_embedding(target_BT)
        for layer in self.decoder_layers:
            x_BTD = self.run(layer, x_BTD, memory_BSD, mask, past)
        return self.decoder_norm(x_BTD)  # type: ignore[no-any-return]

    def decoder_states(self, source_BS: Tensor, target_BT: Tensor, padded: bool = True) -> Tensor:
        """The decoder states before the output projection, [B, T, D]; `padded` as in `encode`."""
        return self.decode(target_BT, self.encode(source_BS, padded), source_BS, padded)

    def logits(self, hidden: Tensor) -> Tensor:
        """Decoder states [..., D] -> logits of the next target token [..., N]; -inf for symbols never predicted."""
        logits = self.output(hidden)
        if self.config.unpredicted:
            logits[..., : self.config.unpredicted] = -torch.inf
        return logits  # type: ignore[no-any-return]

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits of the next target token at each position, [B, T, N]."""
        return self.logits(self.decoder_states(source_BS, target_BT))

    def start(self, source_BS: Tensor, hypotheses: int = 1) -> DecoderCache:
        """Encode the source and prepare incremental decoding."""
        memory_BSD, real = self.encode(source_BS), self.real(source_BS)
        memory = []
        for layer in self.decoder_layers:
            cross = cast(DecoderLayer, layer).cross_attention
            _, keys_values_map = cross.cross_maps()
            memory.append(cross.keys_values(memory_BSD, keys_values_map))
        mask = torch.zeros_like(real, dtype=memory_BSD.dtype).masked_fill_(~real, -torch.inf)
        ancestors = memory_BSD.new_empty(len(source_BS), 1, hypotheses, 0)
        is_recurrent, shape = self.config.decoder == "ssru", (len(source_BS), hypotheses, self.config.d_model)
        past = [] if is_recurrent else [(k[:, :, :0], v[:, :, :0]) for k, v in memory]
        states = [memory_BSD.new_zeros(shape) for _ in memory] if is_recurrent else []
        return DecoderCache(past, memory, mask, ancestors, self.config.attention_window, states)

    def step(self, tokens_BK: Tensor, cache: DecoderCache, first: int | None = None) -> Tensor:
        """Last tokens of K hypotheses [B, K] -> log P of next tokens [B, K, N]; `first` limits K in the result."""
        visible = cache.visible()
        x_BKD = self.target_embedding(tokens_BK.view(-1, 1), cache.length).view(*tokens_BK.shape, -1)
        remember = cache.update if cache.states else cache.append
        for number, layer in enumerate(self.decoder_layers):
            x_BKD = layer(x_BKD, cache.memory[number], cache.mask, visible, partial(remember, number))
        cache.length += 1
        return F.log_softmax(self.logits(self.decoder_norm(x_BKD[:, :first])).float(), dim=-1)
