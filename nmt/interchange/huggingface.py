"""A model directory as a MarianMTModel of Hugging Face transformers, tokenizer included.

AutoModelForSeq2SeqLM and AutoTokenizer load it, and its logits are ours to rounding. What differs:

- Marian keeps sines and cosines in the two halves of the width, where ours alternate, as the paper's do. So all weights
  are written with the width's even indices first, then the odd ones: LayerNorm does not see the order.
- Its attention has biases, which are zero here.
- Its positions end, at MIN_POSITIONS tokens or the model's max_positions. Ours go on.
- The search of transformers divides log P(Y|X) by |Y|^beta and not by ((5 + |Y|) / 6)^alpha. It is given the beta by
  which both grow alike at a typical length.
- Where a limit of length forces the end, that end costs nothing.
- The tokenizer: see huggingface_tokenizer.py.
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.config.rules import require
from nmt.errors import NMTError, how_to_install, one_line
from nmt.interchange.huggingface_tokenizer import fast_tokenizer
from nmt.model_directory.description import ModelDescription, read_description, read_tokenizer
from nmt.storage.foreign import parse_json, read_mapping
from nmt.storage.markdown import plain
from nmt.storage.whole import whole_folder
from nmt.text.tokenizers import SYMBOLS

MIN_POSITIONS = 1024
TOKENS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}
TYPICAL_LENGTH = 20
"""Tokens of a translation at which the two length penalties grow alike."""
LINES_AT_ONCE = 16


def check(description: ModelDescription) -> None:
    """NMTError where Marian cannot express the model."""
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
    """Write the model of a model directory for transformers; an earlier export is replaced, any other folder never.

    Raises NMTError where the model cannot be exported, or the folder not written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    from nmt.interchange.marian import marian_weights
    from nmt.model_directory.weights import load_model

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


def settings(description: ModelDescription) -> dict[str, dict[str, Any]]:
    """File names -> what transformers reads there."""
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
    """The settings of transformers' search that come nearest to ours; limits of length are not among them."""
    # |Y|^beta grows at the typical length as fast as ((5 + |Y|) / 6)^alpha does.
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
    require((output / "config.json").is_file(), f"{output}: no exported model there")
    logging.disable_progress_bar()
    model = AutoModelForSeq2SeqLM.from_pretrained(str(output), local_files_only=True).eval()
    return model, AutoTokenizer.from_pretrained(str(output), local_files_only=True)


def translate(output: Path, lines: list[str], decode: DecodeConfig) -> list[str]:
    """Translations of raw lines by transformers, with an exported model.

    Raises NMTError for sampling, and for a line of more tokens than the export has positions.
    """
    import torch

    require(not decode.do_sample, "decode.do_sample=true: transformers would draw by other random numbers")
    model, tokenizer = load(output)
    positions = model.config.max_position_embeddings
    sentences = [tokenizer(line, verbose=False)["input_ids"] if line.strip() else [] for line in lines]
    for number, ids in enumerate(sentences, 1):
        require(len(ids) <= positions, f"line {number}: {len(ids)} tokens, but Marian's positions end at {positions}")
    translations = [""] * len(lines)

    def tokens(index: int) -> int:
        return len(sentences[index])

    # Sentences of one length have the same limit, which is one number for a call of generate.
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
