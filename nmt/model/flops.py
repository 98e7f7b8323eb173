"""Floating-point operations of training: multiplications and additions of all matrix products, without padding.

The paper estimates them as seconds x devices x sustained FLOP/s of the device (Table 2, "Training Cost").
"""

from nmt.config import ModelConfig


def training_flops(
    config: ModelConfig, vocabulary_size: int, tokens: tuple[int, int], pairs: tuple[int, int, int]
) -> int:
    """FLOPs to train on `tokens` (source, target) once, for Table 2's training cost.

    `pairs`: pairs of query and key in the encoder, in the decoder, and from the decoder to the encoder. Each costs
    d_k + d_v in every head, also in additive attention, whose q + k and tanh are not counted.
    """
    c = config
    assert c.d_k is not None
    assert c.d_v is not None
    source, target = tokens
    query, key_value = c.d_model * c.heads * c.d_k, c.d_model * c.heads * (c.d_k + c.d_v)
    output = c.heads * c.d_v * c.d_model
    self_attention, feed_forward = query + key_value + output, 2 * c.d_model * c.d_ff
    encoder, decoder, cross = pairs
    products = (
        c.encoder_layers * source * (self_attention + feed_forward)
        + c.decoder_layers * target * (self_attention + query + output + feed_forward)
        + c.decoder_layers * source * key_value
        + target * c.d_model * (vocabulary_size - c.unpredicted)
        + (c.encoder_layers * encoder + c.decoder_layers * (decoder + cross)) * c.heads * (c.d_k + c.d_v)
    )
    # A multiplication and an addition, in the forward pass and for the gradient of each factor.
    return 2 * 3 * products
