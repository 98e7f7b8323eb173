"""Options of the model: the Transformer, and what imported models do differently."""

from dataclasses import dataclass

from nmt.config.fields import MISSING, choice, number, setting
from nmt.errors import SettingError


@dataclass
class ModelConfig:
    """The Transformer (section 3), including what Table 3 varies in it (section 6.2)."""

    name: str = MISSING
    """Second part of the run's name, after the corpus name."""
    # The defaults are the base model of Table 3.
    encoder_layers: int = number(6, 1, 1000)
    """Number of encoder layers (N)."""
    decoder_layers: int = number(6, 1, 1000)
    """Number of decoder layers (N)."""
    d_model: int = number(512, 1, 65_536)
    """Width of embeddings and sub-layer outputs."""
    d_ff: int = number(2048, 1, 1_000_000)
    """Inner width of the feed-forward sub-layers."""
    heads: int = number(8, 1, 4096)
    """Number of attention heads (h)."""
    d_k: int | None = number(None, 1, 65_536)
    """Width of a head's queries and keys; null: d_model / heads."""
    d_v: int | None = number(None, 1, 65_536)
    """Width of a head's values; null: d_model / heads."""
    attention: str = choice("scaled_dot_product", "scaled_dot_product", "dot_product", "additive")
    """Attention score: scaled_dot_product (equation 1), dot_product or additive (section 3.2.1;
    uses more memory)."""
    attention_window: int | None = number(None, 1, 1_000_000)
    """Limit self-attention to the r nearest positions or, in the decoder, the last r (section 4);
    null: no limit."""
    decoder: str = choice("attention", "attention", "ssru")
    """How the decoder reads earlier positions: attention (the paper) or ssru (recurrent, as in
    Firefox's models)."""
    dropout: float = number(0.1, 0.0, 0.99)
    """Dropout rate (P_drop, section 5.4) for sub-layer outputs and for the sums of embeddings and
    positions."""
    attention_bias: bool = False
    """Add biases to the projections of attention: queries, keys, values and output."""
    activation: str = choice("relu", "relu", "swish", "gelu", "quick_gelu")
    """Activation of feed-forward sub-layers: relu (equation 2), swish, gelu or quick_gelu (x
    sigmoid(1.702 x))."""
    tied_embeddings: bool = True
    """Share one matrix among the source embedding, target embedding and pre-softmax projection
    (section 3.4)."""
    source_vocabulary_size: int | None = number(None, 5, 2**20)
    """Size of a separate source vocabulary, whose embedding is not tied; null: one vocabulary for
    both languages."""
    source_end: bool = True
    """Attend to the source's end symbol; OpenNMT-py models were trained without that symbol."""
    zero_start: bool = False
    """Start decoding from a zero vector instead of an embedding; padding and the start symbol get
    no probability."""
    end_start: bool = False
    """Start decoding from the embedding of the end symbol, as models of fairseq do."""
    target_tags: bool = False
    """Targets begin with the tag of their language. A search is given the tag and predicts what
    follows it."""
    padding_probability: bool = True
    """Include padding in the softmax; the model learns to give it no probability."""
    untrained: int = number(0, 0, 2**20)
    """Number of the vocabulary's last entries that `nmt extend` added, which the model does not
    predict until it is trained on them; training sets 0."""
    output_bias: bool = False
    """Add a bias to the logits."""
    positions: str = choice("sinusoidal", "sinusoidal", "learned", "tensor2tensor")
    """sinusoidal (section 3.5), learned (Table 3, row E) or tensor2tensor (sinusoids as in that
    library and Marian)."""
    first_position: int = number(0, 0, 1000)
    """Number of a sequence's first position, for sinusoids; 2 in M2M-100 and NLLB."""
    max_positions: int = number(1024, 1, 1_000_000)
    """Maximum sequence length in tokens with learned positions; sinusoids have no limit."""
    norm: str = choice("post", "post", "pre")
    """post (the paper: LayerNorm(x + Sublayer(x))) or pre (x + Sublayer(LayerNorm(x)))."""
    embedding_norm: bool = False
    """Normalize the sums of embeddings and positions (LayerNorm), as mBART does."""
    # The paper gives no value; this is PyTorch's default.
    norm_epsilon: float = number(1e-5, 1e-12, 1.0)
    """Constant added to the variance in LayerNorm."""
    # Its results are the same bits, so a run may resume with another value.
    checkpointing: bool = setting(False, decides=False)
    """Save memory in training: keep only the input of each layer and compute the layer again in the
    backward pass, a third more operations. Results stay the same."""

    def __post_init__(self) -> None:
        width = f"model.d_model={self.d_model}"
        # Section 3.5: each frequency has a sine and a cosine.
        has_sinusoids = self.positions in ("sinusoidal", "tensor2tensor")
        if has_sinusoids and self.d_model % 2 != 0:
            raise SettingError(f"{width}: sinusoids need an even width", key="model.d_model")
        # tensor2tensor divides by the number of frequencies minus 1, which must not be 0.
        if self.positions == "tensor2tensor" and self.d_model < 4:
            raise SettingError(
                f"{width}: must be at least 4 with tensor2tensor positions", key="model.d_model"
            )
        self.check_start(has_sinusoids)
        has_widths = self.d_k is not None and self.d_v is not None
        if not has_widths and self.d_model % self.heads != 0:
            raise SettingError(
                f"must divide {width}, or set model.d_k and model.d_v",
                key="model.heads",
                value=str(self.heads),
            )
        # Filled in here, so that a run records widths and not how to compute them.
        self.d_k = self.d_k or self.d_model // self.heads
        self.d_v = self.d_v or self.d_model // self.heads

    def check_start(self, has_sinusoids: bool) -> None:
        """Raise NMTError for keys of a sequence's start that exclude others."""
        if self.zero_start and self.end_start:
            raise SettingError(
                "excludes model.end_start: decoding starts from one of the two",
                key="model.zero_start",
                value="true",
            )
        if self.first_position and not has_sinusoids:
            raise SettingError(
                "is for sinusoids; learned positions begin at 0",
                key="model.first_position",
                value=str(self.first_position),
            )

    @property
    def unpredicted(self) -> int:
        """The number of leading vocabulary entries that get no probability."""
        if self.zero_start:
            return 2  # padding and the start symbol
        return 0 if self.padding_probability else 1
