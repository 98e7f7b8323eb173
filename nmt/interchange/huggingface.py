"""A model directory as a MarianMTModel of Hugging Face transformers, tokenizer included.

AutoModelForSeq2SeqLM and AutoTokenizer load it, and its logits equal ours up to rounding. Differences:

- Marian keeps sines and cosines in the two halves of the width; here they alternate, as in the paper. So all weights
  are written with the even indices of the width first, then the odd ones. LayerNorm does not depend on the order.
- Marian's attention has biases, which are written as zeros.
- Marian has a last position: MIN_POSITIONS tokens or the model's max_positions. Sinusoids here have none.
- The search of transformers divides log P(Y|X) by |Y|^beta instead of ((5 + |Y|) / 6)^alpha. Its beta is chosen such
  that both grow equally fast at a typical length.
- If the maximal length forces the end symbol, its log probability is not counted.
- The tokenizer: see huggingface_tokenizer.py.

Shapes: D d_model, F d_ff, N vocabulary.
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.config.rules import require
from nmt.errors import NMTError, how_to_install, one_line
from nmt.interchange.huggingface_tokenizer import fast_tokenizer
from nmt.model import Transformer
from nmt.model.attention import MultiHeadAttention
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model_directory.description import ModelDescription, read_description, read_tokenizer
from nmt.model_directory.weights import load_model
from nmt.storage.foreign import parse_json, read_mapping
from nmt.storage.markdown import plain
from nmt.storage.whole import whole_folder
from nmt.text.tokenizers import SYMBOLS

MIN_POSITIONS = 1024
TOKENS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}
TYPICAL_LENGTH = 20
"""Tokens of a translation at which the two length penalties grow equally fast."""
LINES_AT_ONCE = 16

Weights = dict[str, Tensor]


def check(description: ModelDescription) -> None:
    """Raise NMTError if Marian cannot express the model."""
    model = ModelConfig(**description.model)
    for expressible, found, only in (
        (model.norm == "post", f"model.norm={model.norm}", "post-norm layers"),
        (model.positions == "sinusoidal", f"model.positions={model.positions}", "sinusoids"),
        (model.d_k == model.d_v == model.d_model / model.heads, f"model.d_k={model.d_k}, model.d_v={model.d_v}",
         f"d_k = d_v = d_model / heads = {model.d_model} / {model.heads}"),
        (model.attention == "scaled_dot_product", f"model.attention={model.attention}", "scaled_dot_product"),
        (model.attention_window is None, f"model.attention_window={model.attention_window}",
         "self-attention to all positions"),
    ):  # fmt: skip
        require(expressible, f"{found}: Marian has {only} only, so format=huggingface cannot express this model")


def write(folder: Path, output: Path) -> None:
    """Write the model of a model directory for transformers; an earlier export is replaced, but no other folder.

    Raises NMTError if the model cannot be exported, or the folder cannot be written.
    """
    description = read_description(folder)
    check(description)
    output = output.resolve()
    require(replaceable(output), f"{output}: exists and is no earlier export; name another folder")
    tokenizer = read_tokenizer(folder)
    weights = marian_weights(load_model(folder))
    try:
        with whole_folder(output) as temporary:
            save_file(weights, temporary / "model.safetensors", {"format": "pt"})
            (temporary / "tokenizer.json").write_text(fast_tokenizer(tokenizer).to_str(), encoding="utf-8")
            for name, tree in settings(description).items():
                (temporary / name).write_text(json.dumps(tree, indent=2) + "\n", encoding="utf-8")
            (temporary / "README.md").write_text(card(description), encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {output} ({one_line(error)}): is the disk full?") from error


def replaceable(output: Path) -> bool:
    """True if there is nothing, an empty folder, or an earlier export."""
    if not output.is_dir():
        return not output.exists()
    try:
        return not any(output.iterdir()) or read_mapping(output / "config.json", parse_json)["exported_by"] == "nmt"
    except (OSError, NMTError, KeyError):
        return False


def marian_weights(model: Transformer) -> Weights:
    """The weights under Marian's names, in Marian's order; the model is one that `check` accepts."""
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


def settings(description: ModelDescription) -> dict[str, dict[str, Any]]:
    """File names -> the settings that transformers reads from them."""
    tokens = {f"{kind}_token_id": number for kind, number in TOKENS.items() if kind != "unk"}
    tokens |= {"decoder_start_token_id": BOS, "forced_eos_token_id": EOS}
    positions = max(MIN_POSITIONS, ModelConfig(**description.model).max_positions)
    return {
        "config.json": {**model_settings(description), **tokens, "max_position_embeddings": positions},
        "generation_config.json": {**search_settings(DecodeConfig()), **tokens, "max_length": positions},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{kind}_token": SYMBOLS[number] for kind, number in TOKENS.items()},
            "model_input_names": ["input_ids", "attention_mask"],
            "model_max_length": positions,
            "padding_side": "right",
            "clean_up_tokenization_spaces": False,
            "split_special_tokens": True,
        },
    }


def model_settings(description: ModelDescription) -> dict[str, Any]:
    model = ModelConfig(**description.model)
    return {
        "exported_by": "nmt",
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": description.vocabulary_size,
        "decoder_vocab_size": description.vocabulary_size,
        "share_encoder_decoder_embeddings": model.tied_embeddings,
        "tie_word_embeddings": model.tied_embeddings,
        "scale_embedding": True,
        "d_model": model.d_model,
        "encoder_layers": model.encoder_layers,
        "encoder_attention_heads": model.heads,
        "encoder_ffn_dim": model.d_ff,
        "decoder_layers": model.decoder_layers,
        "decoder_attention_heads": model.heads,
        "decoder_ffn_dim": model.d_ff,
        "activation_function": "relu",
        "dropout": model.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "torch_dtype": "float32",
    }


def search_settings(decode: DecodeConfig) -> dict[str, Any]:
    """The settings of transformers' search that are closest to ours, without the limits of length."""
    # At the typical length, |Y|^beta grows as fast as ((5 + |Y|) / 6)^alpha.
    beta = decode.length_penalty * TYPICAL_LENGTH / (5 + TYPICAL_LENGTH)
    return {
        "num_beams": decode.beam_size,
        "do_sample": False,
        **({"length_penalty": beta, "early_stopping": "never"} if decode.beam_size > 1 else {}),
        "suppress_tokens": [PAD, BOS, UNK],
        "min_new_tokens": decode.min_length,
        "no_repeat_ngram_size": decode.no_repeat_ngram_size,
    }


def card(description: ModelDescription) -> str:
    source, target = plain(description.source), plain(description.target)
    return f"""# {source}-{target}

Exported by `nmt export`. A Transformer that translates from {source} to {target}, for
Hugging Face transformers:

```
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained("."), AutoTokenizer.from_pretrained(".")
lines = tokenizer(["A line of text."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**lines), skip_special_tokens=True))
```
"""


def load(output: Path) -> tuple[Any, Any]:
    """The exported model and tokenizer, by transformers."""
    try:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise NMTError(f"transformers is missing; {how_to_install('huggingface')}") from error
    logging.disable_progress_bar()
    model = AutoModelForSeq2SeqLM.from_pretrained(str(output), local_files_only=True).eval()
    return model, AutoTokenizer.from_pretrained(str(output), local_files_only=True)


def translate(output: Path, lines: list[str], decode: DecodeConfig) -> list[str]:
    """Translations of raw lines by transformers, with an exported model.

    Raises NMTError for a line with more tokens than the export has positions.
    """
    assert not decode.do_sample, "transformers would draw other random numbers"
    model, tokenizer = load(output)
    positions = model.config.max_position_embeddings
    sentences = [tokenizer(line, verbose=False)["input_ids"] if line.strip() else [] for line in lines]
    for number, ids in enumerate(sentences, 1):
        require(len(ids) <= positions, f"line {number}: {len(ids)} tokens, but Marian's positions end at {positions}")
    translations = [""] * len(lines)

    def tokens(index: int) -> int:
        return len(sentences[index])

    # A call of generate has one maximal length, so sentences are grouped by their lengths.
    for length, group in groupby(sorted(filter(tokens, range(len(lines))), key=tokens), tokens):
        indices = list(group)
        limit = min(length + decode.max_extra_length, (decode.max_length or positions) + 1, positions)
        for batch in (indices[i : i + LINES_AT_ONCE] for i in range(0, len(indices), LINES_AT_ONCE)):
            found = model.generate(
                torch.tensor([sentences[index] for index in batch]),
                max_length=limit + 1,  # the start symbol counts
                **search_settings(decode),
            )
            for index, text in zip(batch, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
                translations[index] = " ".join(text.split())
    return translations
