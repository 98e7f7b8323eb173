"""The Transformer."""

from dataclasses import dataclass

from nmt.config.fields import MISSING, choice, number, require


@dataclass
class ModelConfig:
    """The Transformer (section 3), with everything that Table 3 varies (section 6.2) under the paper's symbols."""

    name: str = MISSING
    """Part of the run's name, with that of the corpus."""
    encoder_layers: int = number(6, 1, 1000)
    """N of the encoder."""
    decoder_layers: int = number(6, 1, 1000)
    """N of the decoder."""
    d_model: int = number(512, 1, 65_536)
    """Width of embeddings and sub-layer outputs."""
    d_ff: int = number(2048, 1, 1_000_000)
    """Width inside the feed-forward sub-layers."""
    heads: int = number(8, 1, 4096)
    """h, attention heads."""
    d_k: int | None = number(None, 1, 65_536)
    """Width of a head's queries and keys; null: d_model / heads."""
    d_v: int | None = number(None, 1, 65_536)
    """Width of a head's values; null: d_model / heads."""
    attention: str = choice("scaled_dot_product", "scaled_dot_product", "dot_product", "additive")
    """The score of a query and a key: scaled_dot_product (equation 1), dot_product or additive (section 3.2.1), whose
    memory grows with queries x keys x d_k."""
    attention_window: int | None = number(None, 1, 1_000_000)
    """r: a position attends to the r around it, or in the decoder to the last r (section 4); null: to all."""
    dropout: float = number(0.1, 0.0, 0.99)
    """P_drop (section 5.4); on sub-layer outputs, and on the sums of embeddings and positions."""
    attention_bias: bool = False
    """Biases on queries, keys, values and the output of attention."""
    activation: str = choice("relu", "relu", "swish", "gelu", "quick_gelu")
    """Between the feed-forward maps: relu (equation 2), swish, gelu or quick_gelu, x sigmoid(1.702 x)."""
    tied_embeddings: bool = True
    """One matrix for source embedding, target embedding and pre-softmax (section 3.4)."""
    source_vocabulary_size: int | None = number(None, 5, 2**20)
    """Entries of a vocabulary of the source alone, whose embedding is then not tied; null: one for both languages."""
    source_end: bool = True
    """Attention sees the end symbol of the source; models of OpenNMT-py were trained without one."""
    zero_start: bool = False
    """The decoder starts from zeros, not from an embedding; padding and start symbol have no probability."""
    padding_probability: bool = True
    """The softmax has an entry for padding, which the model learns to give no probability."""
    output_bias: bool = False
    """A bias on the logits."""
    positions: str = choice("sinusoidal", "sinusoidal", "learned", "tensor2tensor")
    """sinusoidal (section 3.5), learned (Table 3, row E) or tensor2tensor, sinusoids of that library and of Marian."""
    max_positions: int = number(1024, 1, 1_000_000)
    """Longest sequence, in tokens, for learned positions; sinusoids have no limit."""
    norm: str = choice("post", "post", "pre")
    """post (the paper: LayerNorm(x + Sublayer(x))) or pre (x + Sublayer(LayerNorm(x)))."""
    norm_epsilon: float = number(1e-5, 1e-12, 1.0)
    """Added to the variance in LayerNorm."""

    def __post_init__(self) -> None:
        width = f"model.d_model={self.d_model}"
        require(self.positions == "learned" or self.d_model % 2 == 0, f"{width}: sinusoids need an even width")
        too_narrow = self.positions == "tensor2tensor" and self.d_model < 4
        require(not too_narrow, f"{width}: model.positions=tensor2tensor needs 4 or more")
        is_settled = self.d_k is not None and self.d_v is not None
        message = f"model.heads={self.heads}: must divide {width}, or set model.d_k and model.d_v"
        require(is_settled or self.d_model % self.heads == 0, message)
        self.d_k = self.d_k or self.d_model // self.heads
        self.d_v = self.d_v or self.d_model // self.heads

    @property
    def unpredicted(self) -> int:
        """The number of symbols, the first of the vocabulary, that have no probability."""
        return 2 if self.zero_start else 0 if self.padding_probability else 1
