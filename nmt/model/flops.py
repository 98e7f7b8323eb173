"""The floating-point operations of a training pass, for the training cost in Table 2."""

from nmt.config import ModelConfig

MULTIPLICATION_AND_ADDITION = 2
FORWARD_AND_BACKWARD = 3  # the product itself, and the gradients of both its matrices


def training_flops(
    config: ModelConfig,
    vocabulary_size: int,
    tokens: tuple[int, int],
    pairs: tuple[int, int, int],
) -> int:
    """FLOPs of the matrix products in one training pass over `tokens`, for the cost in Table 2.

    `tokens` are the numbers of source and target tokens. `pairs` are the numbers of query-key pairs
    in the encoder, in the decoder and in cross-attention. Each pair costs d_k + d_v multiplications
    per head, even in additive attention, because q + k and tanh are not counted.
    """
    source_tokens, target_tokens = tokens
    encoder_pairs, decoder_pairs, cross_pairs = pairs
    assert config.d_k
    assert config.d_v
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
    encoder = source_tokens * (attention + feed_forward) + encoder_pairs * head
    # Cross-attention projects queries and outputs at target positions, keys and values at source
    # positions.
    decoder = (
        target_tokens * (decoder_self_attention + half_attention + feed_forward)
        + source_tokens * half_attention
        + (decoder_pairs + cross_pairs) * head
    )
    predicted_words = vocabulary_size - config.unpredicted
    products = (
        config.encoder_layers * encoder
        + config.decoder_layers * decoder
        + target_tokens * config.d_model * predicted_words
    )
    # Norms, softmax, dropout and embedding look-ups contain no matrix products and do not count.
    return MULTIPLICATION_AND_ADDITION * FORWARD_AND_BACKWARD * products
