"""Export M2M-100, NLLB, SMaLL-100 and mBART-50 models for transformers, as their authors do.

Weights, symbols and ids are those of the folder that was imported. Only what nmt does not read is
lost: the embeddings of mBART's two unused positions, which become zeros.

Shapes: D d_model, N vocabulary.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.files import EMBEDDINGS, ModelDescription, expected_search
from nmt.model import Transformer, load_model
from nmt.plugins.exchange.hub_weights import Weights
from nmt.plugins.exchange.huggingface_settings import (
    HubExport,
    SpecialTokens,
    architecture_keys,
    exported_penalty,
    position_count,
    settings_of_search,
)
from nmt.plugins.exchange.marian import HUB_BIAS, HUB_EMBEDDINGS, HUB_SHARED
from nmt.plugins.exchange.multilingual_hub import POSITIONS, UNUSED_POSITIONS
from nmt.plugins.exchange.multilingual_vocabulary import OUR_ORDER
from nmt.plugins.exchange.multilingual_vocabulary_export import (
    example_direction,
    tokenizer_class,
    vocabulary_files,
)
from nmt.plugins.exchange.parameters import exported_layers, halves
from nmt.text import MultilingualTokenizer

M2M_100 = "M2M100ForConditionalGeneration"
MBART = "MBartForConditionalGeneration"
MBART_KEYS = {
    "normalize_before": True,
    "add_final_layer_norm": True,
    "normalize_embedding": True,
    "static_position_embeddings": False,
    "add_bias_logits": False,
}
"""Keys of config.json in mBART-50, which programs other than transformers read."""
TOKENS = SpecialTokens(
    padding=OUR_ORDER[PAD],
    begin=OUR_ORDER[BOS],
    end=OUR_ORDER[EOS],
    unknown=OUR_ORDER[UNK],
    decoder_start=OUR_ORDER[EOS],
)
"""fairseq's ids."""
USAGE = """
```python
from transformers import AutoModelForSeq2SeqLM, {tokenizer_class}

model = AutoModelForSeq2SeqLM.from_pretrained(".")
tokenizer = {tokenizer_class}.from_pretrained(".")


def translate({parameters}):
    tokenizer.src_lang = {first}
    source = tokenizer(line, return_tensors="pt")
    length = source["input_ids"].shape[1]
    if length == 2:  # only the tag and the end symbol
        return ""
    longest = min(length + {extra} + 1, {positions})
    [tokens] = model.generate(**source, max_length=longest{forced})
    text = tokenizer.decode(tokens[{start}:], skip_special_tokens=True)
    return " ".join(text.split())


print(translate("A line of text.", {example}))
```
{note}
`translate` works like `nmt translate split=never protect=none`, except that

- transformers compares hypotheses by log P(Y|X) / |Y|^{beta:.3g}, and does not count the start
  symbol in |Y|
- transformers always finds an end at the maximum length and does not count its log P
- nmt copies lines without letters
- transformers fails for lines of {positions} or more subwords, nmt reports them

By default, `nmt translate` also splits lines into sentences and protects items such as URLs.
"""
NOTE_ON_SMALL_100 = """
The model is a SMaLL-100: the source begins with the tag of the target language. Its tokenizer,
`SMALL100Tokenizer`, is not part of transformers, so `AutoTokenizer` cannot load it. The code uses
`M2M100Tokenizer`, which has the same vocabulary, and passes the target language as `src_lang`.
"""
NOTE_ON_NEW_LANGUAGES = """
`nmt extend` added {languages} to the vocabulary, with new subwords. transformers also encodes the
older languages with them where they occur, which nmt does not, so translations from these languages
may differ.
"""


def export_of(
    folder: Path, description: ModelDescription, tokenizer: MultilingualTokenizer
) -> HubExport:
    """The export of a multilingual model."""
    model = ModelConfig(**description.model)
    # First, because it may fail, and reading the weights takes long.
    trees, vocabulary = vocabulary_files(model, tokenizer, position_count(model))
    weights = weights_of(load_model(folder))
    trees |= settings(description)
    return HubExport(weights, trees, vocabulary, usage_of(description, tokenizer))


def weights_of(model: Transformer) -> Weights:
    """The weights, keyed by their transformers names, in fairseq's order."""
    config = model.config
    ours = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    order_D = torch.from_numpy(halves(config.d_model))
    weights = exported_layers(config, ours, order_D)

    def in_their_order(tensor_N: Tensor) -> Tensor:
        # The order exchanges two rows, so it is its own inverse.
        symbols = tensor_N[list(OUR_ORDER)]
        return torch.cat((symbols, tensor_N[len(OUR_ORDER) :]))

    # transformers ties all matrices or none, and keeps the shared one in either case.
    names = {HUB_SHARED: EMBEDDINGS[0]}
    if not config.tied_embeddings:
        names |= zip(HUB_EMBEDDINGS, EMBEDDINGS, strict=True)
    for theirs, name in names.items():
        weights[theirs] = in_their_order(ours[name])[:, order_D]
    if config.positions == "learned":
        bias_N = ours.get("output.bias", torch.zeros(model.vocabulary_size))
        weights[HUB_BIAS] = in_their_order(bias_N)[None]
        for stack, name in (("encoder", "source_embedding"), ("decoder", "target_embedding")):
            table_PD = ours[f"{name}.positions.table"][:, order_D]
            unused = torch.zeros(UNUSED_POSITIONS, config.d_model)
            weights[POSITIONS.format(stack=stack)] = torch.cat((unused, table_PD))
    # safetensors refuses tensors that share memory, such as the parts of one matrix.
    return {name: weight.clone() for name, weight in weights.items()}


def settings(description: ModelDescription) -> dict[str, dict[str, Any]]:
    """The settings of the model and its search, keyed by file name."""
    model = ModelConfig(**description.model)
    is_mbart = model.positions == "learned"
    decode = expected_search(DecodeConfig(), description)
    of_model = {
        "exported_by": "nmt",
        "model_type": "mbart" if is_mbart else "m2m_100",
        "architectures": [MBART if is_mbart else M2M_100],
        "tie_word_embeddings": model.tied_embeddings,
        **architecture_keys(model),
        "vocab_size": description.vocabulary_size,
        **TOKENS.settings(),
        "max_position_embeddings": position_count(model),
    }
    if is_mbart:
        # CTranslate2's converter decides by the tokenizer how decoding starts.
        of_model |= {**MBART_KEYS, "tokenizer_class": "MBart50Tokenizer"}
    return {
        "config.json": of_model,
        "generation_config.json": settings_of_search(decode, position_count(model), TOKENS),
    }


def usage_of(description: ModelDescription, tokenizer: MultilingualTokenizer) -> str:
    """The part of README.md on how to translate, and how the results differ from nmt's."""
    decode = expected_search(DecodeConfig(), description)
    model = ModelConfig(**description.model)
    source, target = example_direction(description, tokenizer)
    if tokenizer.has_target_tags:
        note = ""
        if tokenizer.extensions:
            note = NOTE_ON_NEW_LANGUAGES.format(languages=", ".join(tokenizer.extensions))
        class_name = tokenizer_class(model, tokenizer)
        is_m2m = class_name == "M2M100Tokenizer"
        tag = 'f"__{target}__"' if is_m2m else "target"
        sides = {
            "tokenizer_class": class_name,
            "parameters": "line, source, target",
            "first": "source",
            "forced": f", forced_bos_token_id=tokenizer.convert_tokens_to_ids({tag})",
            "start": "2",
            "example": f'"{source}", "{target}"',
            "note": note,
        }
    else:
        sides = {
            "tokenizer_class": "M2M100Tokenizer",
            "parameters": "line, target",
            "first": "target",
            "forced": "",
            "start": "1",
            "example": f'"{target}"',
            "note": NOTE_ON_SMALL_100,
        }
    return USAGE.format(
        extra=decode.max_extra_length,
        positions=position_count(model),
        beta=exported_penalty(decode),
        **sides,
    )
