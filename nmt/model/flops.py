"""The floating-point operations of a training pass, for the training cost in Table 2."""

from dataclasses import dataclass

from torch import nn

from nmt.config import ModelConfig
from nmt.model.transformer import Transformer

MULTIPLICATION_AND_ADDITION = 2


@dataclass(frozen=True)
class Work:
    """The products of a layer in a training pass, per product of its forward pass."""

    has_gradient: bool = True
    """Whether the backward pass reaches the layer: something is trained in it or before it."""
    trained: float = 1.0
    """The share of the matrices' numbers that are trained."""

    @property
    def of_matrices(self) -> float:
        """The product itself, and the gradients of its input and its matrix."""
        return 1 + self.has_gradient + self.trained

    @property
    def of_pairs(self) -> float:
        """The product itself, and the gradients of both its factors."""
        return 3 if self.has_gradient else 1


@dataclass(frozen=True)
class ModelWork:
    """The work of all layers, from first to last, and of the projection before the softmax."""

    encoder: list[Work]
    decoder: list[Work]
    output: Work
    memory_has_gradient: bool = True
    """Whether something is trained up to the encoder's output."""


def full_work(config: ModelConfig) -> ModelWork:
    """The work if all parameters are trained."""
    return ModelWork([Work()] * config.encoder_layers, [Work()] * config.decoder_layers, Work())


def work_of(model: Transformer) -> ModelWork:
    """The work of a model, some of whose parameters may be frozen."""
    source = is_trained(model.source_embedding)
    encoder = []
    for layer in model.encoder_layers:
        source = source or is_trained(layer)
        encoder.append(Work(source, trained_share(layer)))
    source = source or is_trained(model.encoder_norm)
    target = source or is_trained(model.target_embedding)
    decoder = []
    for layer in model.decoder_layers:
        target = target or is_trained(layer)
        decoder.append(Work(target, trained_share(layer)))
    target = target or is_trained(model.decoder_norm)
    return ModelWork(encoder, decoder, Work(target, trained_share(model.output)), source)


def is_trained(module: nn.Module) -> bool:
    """Whether any parameter of a module is trained."""
    return any(parameter.requires_grad for parameter in module.parameters())


def trained_share(module: nn.Module) -> float:
    """The share of the numbers in a module's matrices that are trained."""
    matrices = [parameter for parameter in module.parameters() if parameter.dim() > 1]
    trained = sum(matrix.numel() for matrix in matrices if matrix.requires_grad)
    return trained / sum(matrix.numel() for matrix in matrices)


def training_flops(
    config: ModelConfig,
    vocabulary_size: int,
    tokens: tuple[int, int],
    pairs: tuple[int, int, int],
    work: ModelWork | None = None,
) -> int:
    """FLOPs of the matrix products in one training pass over `tokens`, for the cost in Table 2.

    `tokens` are the numbers of source and target tokens. `pairs` are the numbers of query-key pairs
    in the encoder, in the decoder and in cross-attention. Each pair costs d_k + d_v multiplications
    per head, even in additive attention, because q + k and tanh are not counted. Without `work`,
    all parameters are trained. Layers that the backward pass computes again count once.
    """
    source_tokens, target_tokens = tokens
    encoder_pairs, decoder_pairs, cross_pairs = pairs
    assert config.d_k
    assert config.d_v
    work = work or full_work(config)
    # Per query-key pair: d_k multiplications for the score, d_v for the weighted value.
    head = config.heads * (config.d_k + config.d_v)
    # The query and output projections together cost as much as the key and value projections.
    half_attention = config.d_model * head
    attention = 2 * half_attention
    feed_forward = 2 * config.d_model * config.d_ff
    decoder_self_attention = attention
    if config.decoder == "ssru":  # two products instead of self-attention
        decoder_self_attention = 2 * config.d_model**2
        decoder_pairs = 0
    products = 0.0
    for layer in work.encoder:
        products += source_tokens * (attention + feed_forward) * layer.of_matrices
        products += encoder_pairs * head * layer.of_pairs
    for layer in work.decoder:
        # Cross-attention projects queries and outputs at target positions, keys and values at
        # source positions.
        at_target = decoder_self_attention + half_attention + feed_forward
        products += target_tokens * at_target * layer.of_matrices
        of_memory = Work(work.memory_has_gradient, layer.trained)
        products += source_tokens * half_attention * of_memory.of_matrices
        products += (decoder_pairs + cross_pairs) * head * layer.of_pairs
    predicted_words = vocabulary_size - config.unpredicted
    products += target_tokens * config.d_model * predicted_words * work.output.of_matrices
    # Norms, softmax, dropout and embedding look-ups contain no matrix products and do not count.
    return round(MULTIPLICATION_AND_ADDITION * products)
