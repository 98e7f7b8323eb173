"""The Transformer (section 3, figure 1).

Shapes: B batch, T target positions, S source positions, D d_model, N vocabulary, K hypotheses per
sentence.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nmt.config import EOS, PAD, ModelConfig
from nmt.kernels import Compiler, Linear, linear
from nmt.model.cache import DecoderCache
from nmt.model.embeddings import Embedding, random_matrix
from nmt.model.layers import DecoderLayer, EncoderLayer, neighborhood


def final_norm(config: ModelConfig) -> nn.Module:
    """The norm after a stack of layers; the identity if the last layer already ends in a norm."""
    if config.norm == "pre":
        return nn.LayerNorm(config.d_model, config.norm_epsilon)
    return nn.Identity()


class Transformer(nn.Module):
    """The encoder-decoder (section 3, figure 1), with a joint vocabulary or one for each side."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        # Compiles the layers for training steps. The search, whose arguments change with each
        # step, is not compiled.
        self.compiler: Compiler | None = None
        source_size = config.source_vocabulary_size or vocabulary_size
        # Modules draw their initial weights in this order, and each draws even if tied weights
        # replace its own: another order would give another model for the same seed.
        self.source_embedding = Embedding(config, source_size)
        self.target_embedding = Embedding(config, vocabulary_size)
        self.encoder_layers = nn.ModuleList(
            EncoderLayer(config) for _ in range(config.encoder_layers)
        )
        self.decoder_layers = nn.ModuleList(
            DecoderLayer(config) for _ in range(config.decoder_layers)
        )
        self.encoder_norm = final_norm(config)
        self.decoder_norm = final_norm(config)
        self.output = Linear(config.d_model, vocabulary_size, bias=False)
        # Even an untied matrix starts like the embedding that it could share (section 3.4).
        self.output.weight = random_matrix(vocabulary_size, config.d_model)
        if config.output_bias:
            self.output.bias = nn.Parameter(torch.zeros(vocabulary_size))
        if config.tied_embeddings:
            self.tie_embeddings()

    def tie_embeddings(self) -> None:
        """One matrix for both embeddings and the linear map before the softmax (section 3.4).

        With one vocabulary per side, the source embedding keeps its own matrix.
        """
        if self.config.source_vocabulary_size is None:
            self.target_embedding.weight = self.source_embedding.weight
        self.output.weight = self.target_embedding.weight

    def real(self, source_BS: Tensor) -> Tensor:
        """True at source positions other than padding: [B, 1, 1, S].

        If `source_end` is false, end symbols are masked, too.
        """
        real_BS = source_BS != PAD
        if not self.config.source_end:
            real_BS &= source_BS != EOS
            # Keep an empty source's end symbol, because an empty softmax is NaN.
            real_BS[:, 0] = True
        return real_BS[:, None, None, :]

    def cross_mask(self, source_BS: Tensor, padded: bool = True) -> Tensor | None:
        """True where the decoder may attend to source positions, [B, 1, 1, S]; None: everywhere.

        Without a mask, torch can use its fastest kernels.
        """
        if padded or not self.config.source_end:
            return self.real(source_BS)
        return None

    def source_mask(self, source_BS: Tensor, padded: bool = True) -> Tensor | None:
        """Like `cross_mask`, but for the encoder: [B, 1, S, S] if self-attention is restricted.

        Section 4 restricts it to a neighborhood.
        """
        real = self.cross_mask(source_BS, padded)
        if self.config.attention_window is None:
            return real
        near_SS = neighborhood(source_BS.shape[1], self.config.attention_window, source_BS.device)
        if real is None:
            return near_SS
        # Padding far past a sentence's end sees no real token. It sees itself, because an empty
        # softmax is NaN.
        itself_SS = torch.eye(len(near_SS), dtype=torch.bool, device=near_SS.device)
        return near_SS & (real | itself_SS)

    @property
    def is_training_step(self) -> bool:
        return self.training and torch.is_grad_enabled()

    def training_compiler(self) -> Compiler | None:
        """The compiler in a training step, otherwise None."""
        return self.compiler if self.is_training_step else None

    def training_form(self, layer: nn.Module, rows: int) -> Callable[..., Tensor]:
        """The function that computes a layer for `rows` sentences: compiled in a training step."""
        compiler = self.training_compiler()
        # For a batch of a single sentence, the compiler would build additional kernels:
        # torch.compile treats a size of 1 as a constant even if shapes are dynamic.
        if compiler is None or rows == 1:
            return layer
        # The function of the class, not the method of the layer, so that all layers share one
        # compiled form.
        return partial(compiler.compiled(type(layer).forward), layer)

    def run(self, layer: nn.Module, x: Tensor, *arguments: Any) -> Tensor:
        """The output of a layer."""
        function = self.training_form(layer, len(x))
        if not (self.config.checkpointing and self.is_training_step):
            return function(x, *arguments)
        # Chen et al. 2016, https://arxiv.org/abs/1604.06174. The backward pass computes the layer
        # again, with the state of the random generators from here, so dropout is the same.
        output: Tensor = checkpoint(function, x, *arguments, use_reentrant=False)
        return output

    def encode(self, source_BS: Tensor, padded: bool = True) -> Tensor:
        """Encode source tokens, including the end symbol, into memory [B, S, D].

        `padded=False` promises that there is no padding. Checking would wait for the device.
        """
        mask = self.source_mask(source_BS, padded)
        x_BSD = self.source_embedding(source_BS)
        for layer in self.encoder_layers:
            x_BSD = self.run(layer, x_BSD, mask)
        return self.encoder_norm(x_BSD)

    def decode(
        self,
        target_BT: Tensor,
        memory_BSD: Tensor,
        source_BS: Tensor,
        padded: bool = True,
    ) -> Tensor:
        """Decoder states that predict the next tokens, [B, T, D].

        `target_BT` begins with a start symbol; `padded` is about the source, as in `encode`.
        """
        # Padding of the target needs no mask: it comes last, so no real token sees it, and the loss
        # skips it.
        source_mask = self.cross_mask(source_BS, padded)
        window = self.config.attention_window
        # Without a window, layers pass torch a flag for causal attention, which needs no mask.
        target_mask = None
        if window is not None:
            target_mask = neighborhood(target_BT.shape[1], window, target_BT.device, causal=True)
        x_BTD = self.target_embedding(target_BT)
        for layer in self.decoder_layers:
            x_BTD = self.run(layer, x_BTD, memory_BSD, source_mask, target_mask)
        return self.decoder_norm(x_BTD)

    def decoder_states(
        self,
        source_BS: Tensor,
        target_BT: Tensor,
        padded: bool = True,
    ) -> Tensor:
        """The decoder states before the output projection, [B, T, D]; `padded` as in `encode`."""
        memory_BSD = self.encode(source_BS, padded)
        return self.decode(target_BT, memory_BSD, source_BS, padded)

    def predicted_logits(self, hidden: Tensor) -> Tensor:
        """The logits without those of untrained entries, which are the last ones."""
        if self.config.untrained:
            logits = self.logits_before_extension(hidden)
        else:
            logits = self.output(hidden)
        if self.config.unpredicted:
            logits[..., : self.config.unpredicted] = -torch.inf
        return logits

    def logits_before_extension(self, hidden: Tensor) -> Tensor:
        """The logits of the entries that the vocabulary had before `nmt extend`."""
        # The product and the softmax have the same shape as before, and so the same bits.
        size = self.vocabulary_size - self.config.untrained
        bias = self.output.bias
        return linear(hidden, self.output.weight[:size], None if bias is None else bias[:size])

    def with_untrained(self, values: Tensor) -> Tensor:
        """The values with -inf for untrained entries."""
        if not self.config.untrained:
            return values
        return F.pad(values, (0, self.config.untrained), value=-torch.inf)

    def logits(self, hidden: Tensor) -> Tensor:
        """Decoder states [..., D] -> logits of the next target token [..., N].

        Symbols that a model never predicts, such as padding, have -inf.
        """
        return self.with_untrained(self.predicted_logits(hidden))

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Decoder states [..., D] -> log P of the next target token [..., N]."""
        # In float32, whatever the precision of the model: a search adds up many of them.
        logits = self.predicted_logits(hidden).float()
        return self.with_untrained(F.log_softmax(logits, dim=-1))

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits of the next target token at each position, [B, T, N]."""
        return self.logits(self.decoder_states(source_BS, target_BT))

    def start(self, source_BS: Tensor, hypotheses: int = 1) -> DecoderCache:
        """Encode the source [B, S] and prepare incremental decoding with K = `hypotheses`."""
        memory_BSD = self.encode(source_BS)
        source_keys_values = []
        for layer in self.decoder_layers:
            cross = cast(DecoderLayer, layer).cross_attention
            _, keys_values_map = cross.cross_maps()
            source_keys_values.append(cross.keys_values(memory_BSD, keys_values_map))
        real = self.real(source_BS)
        source_mask = torch.zeros_like(real, dtype=memory_BSD.dtype)
        cache = DecoderCache(
            target_keys_values=[],
            source_keys_values=source_keys_values,
            source_mask=source_mask.masked_fill_(~real, -torch.inf),
            # No columns yet: the first step makes room.
            ancestor_mask=memory_BSD.new_empty(len(source_BS), 1, hypotheses, 0),
            window=self.config.attention_window,
            states=[],
        )
        if self.config.decoder == "ssru":
            shape = (len(source_BS), hypotheses, self.config.d_model)
            cache.states = [memory_BSD.new_zeros(shape) for _ in source_keys_values]
        else:
            # No columns either, but the heads, widths, type and device of keys and values.
            cache.target_keys_values = [(k[:, :, :0], v[:, :, :0]) for k, v in source_keys_values]
        return cache

    def step(self, tokens_BK: Tensor, cache: DecoderCache, first: int | None = None) -> Tensor:
        """Last tokens of K hypotheses [B, K] -> log P of the next tokens [B, K, N].

        `first` limits the result to the first hypotheses; None: all K.
        """
        # Before the layers, because it may make room for the columns that they append.
        ancestor_mask = cache.begin_step()
        # The hypotheses of a sentence are at the same position: each is a row of one token.
        embedded = self.target_embedding(tokens_BK.view(-1, 1), cache.length)
        # The layers see K queries per sentence, which share its memory. The mask keeps each of them
        # to its own earlier tokens.
        x_BKD = embedded.view(*tokens_BK.shape, -1)
        remember = cache.update if cache.states else cache.append
        for number, layer in enumerate(self.decoder_layers):
            keys_values = cache.source_keys_values[number]
            remember_in_layer = partial(remember, number)
            x_BKD = layer(x_BKD, keys_values, cache.source_mask, ancestor_mask, remember_in_layer)
        # After the last layer: until then, all layers write the columns of this position.
        cache.length += 1
        return self.log_probabilities(self.decoder_norm(x_BKD[:, :first]))
