"""Our weights under Marian's names, with the width in Marian's order.

Shapes: D d_model, F d_ff, N vocabulary.
"""

import torch
from torch import Tensor, nn

from nmt.model import Transformer
from nmt.model.attention import MultiHeadAttention
from nmt.model.layers import DecoderLayer, EncoderLayer

Weights = dict[str, Tensor]


def marian_weights(model: Transformer) -> Weights:
    """Marian's names -> tensors of their own. The model is one that `check` has passed."""
    order_D = torch.cat((torch.arange(0, model.config.d_model, 2), torch.arange(1, model.config.d_model, 2)))
    weights = embedding_weights(model, order_D)
    for stack, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for i, layer in enumerate(layers):
            assert isinstance(layer, EncoderLayer | DecoderLayer)
            name, last = f"model.{stack}.layers.{i}", layer.residual_2
            weights |= attention_weights(f"{name}.self_attn", layer.self_attention, order_D)
            weights |= norm_weights(f"{name}.self_attn_layer_norm", layer.residual_1.norm, order_D)
            if isinstance(layer, DecoderLayer):
                weights |= attention_weights(f"{name}.encoder_attn", layer.cross_attention, order_D)
                weights |= norm_weights(f"{name}.encoder_attn_layer_norm", layer.residual_2.norm, order_D)
                last = layer.residual_3
            weights |= feed_forward_weights(name, layer.feed_forward, order_D)
            weights |= norm_weights(f"{name}.final_layer_norm", last.norm, order_D)
    return {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}


def embedding_weights(model: Transformer, order_D: Tensor) -> Weights:
    bias = {"final_logits_bias": torch.zeros(1, model.vocabulary_size)}
    if model.config.tied_embeddings:
        return {"model.shared.weight": model.source_embedding.weight[:, order_D], **bias}
    return {
        "model.encoder.embed_tokens.weight": model.source_embedding.weight[:, order_D],
        "model.decoder.embed_tokens.weight": model.target_embedding.weight[:, order_D],
        "lm_head.weight": model.output.weight[:, order_D],
        **bias,
    }


def attention_weights(name: str, attention: MultiHeadAttention, order_D: Tensor) -> Weights:
    q, k, v = attention.input[:, order_D].split(attention.widths)
    matrices = {"q_proj": q, "k_proj": k, "v_proj": v, "out_proj": attention.output[order_D]}
    weights = {f"{name}.{part}.weight": matrix.clone() for part, matrix in matrices.items()}
    return weights | {f"{name}.{part}.bias": torch.zeros(len(matrix)) for part, matrix in matrices.items()}


def feed_forward_weights(name: str, feed_forward: nn.Module, order_D: Tensor) -> Weights:
    w1_FD, b1_F, w2_DF, b2_D = feed_forward.parameters()
    return {
        f"{name}.fc1.weight": w1_FD[:, order_D],
        f"{name}.fc1.bias": b1_F.clone(),
        f"{name}.fc2.weight": w2_DF[order_D],
        f"{name}.fc2.bias": b2_D[order_D],
    }


def norm_weights(name: str, norm: nn.LayerNorm, order_D: Tensor) -> Weights:
    return {f"{name}.weight": norm.weight[order_D], f"{name}.bias": norm.bias[order_D]}
