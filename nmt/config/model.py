"""The Transformer."""

from dataclasses import dataclass

from omegaconf import MISSING

from nmt.config.rules import check_numbers, number, require_choice
from nmt.errors import NMTError


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
    attention: str = "scaled_dot_product"
    """The score of a query and a key: scaled_dot_product (equation 1), dot_product or additive (section 3.2.1)."""
    attention_window: int | None = number(None, 1, 1_000_000)
    """r: a position attends to the r around it, or in the decoder to the last r (section 4); null: to all."""
    dropout: float = number(0.1, 0.0, 0.99)
    """P_drop (section 5.4); on sub-layer outputs, and on the sums of embeddings and positions."""
    tied_embeddings: bool = True
    """One matrix for source embedding, target embedding and pre-softmax (section 3.4)."""
    positions: str = "sinusoidal"
    """sinusoidal (section 3.5) or learned (Table 3, row E)."""
    max_positions: int = number(1024, 1, 1_000_000)
    """Longest sequence, in tokens, for learned positions; sinusoids have no limit."""
    norm: str = "post"
    """post (the paper: LayerNorm(x + Sublayer(x))) or pre (x + Sublayer(LayerNorm(x)))."""

    def __post_init__(self) -> None:
        check_numbers(self, "model.")
        require_choice("model.positions", self.positions, ("sinusoidal", "learned"))
        require_choice("model.norm", self.norm, ("post", "pre"))
        require_choice("model.attention", self.attention, ("scaled_dot_product", "dot_product", "additive"))
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise NMTError(f"model.d_model={self.d_model}: sinusoids need an even width")
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            raise NMTError(
                f"model.heads={self.heads}: must divide model.d_model={self.d_model}, or set model.d_k and model.d_v"
            )
        self.d_k = self.d_k or self.d_model // self.heads
        self.d_v = self.d_v or self.d_model // self.heads
