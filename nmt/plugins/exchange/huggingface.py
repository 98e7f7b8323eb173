"""Export a model directory as a Hugging Face transformers MarianMTModel, including the tokenizer.

AutoModelForSeq2SeqLM and AutoTokenizer load the export, whose logits equal ours up to rounding. Differences:

- transformers uses the paper's sinusoids and an epsilon of 1e-5, and its softmax includes <pad>, the decoder's start
  token. So for a model trained by Marian, the log P of a token differs by about 1e-4.
- A MarianMTModel has a length limit, here max(MIN_POSITIONS, max_positions), and biases: zeros if our model has none.
- transformers' search divides log P(Y|X) by |Y|^beta, as Marian does, instead of by ((5 + |Y|) / 6)^alpha. With the
  exported beta, both grow equally fast at a typical length. A forced end symbol adds nothing to log P.

An imported model gets its MarianTokenizer back. Other tokenizers become a pipeline of the tokenizers library, because
MarianTokenizer cannot spell unknown characters as bytes. The pipeline gives raw lines the same ids and text, except for

- characters newer than the library's Unicode tables: Python 3.11 knows 72 that tokenizers 0.23 does not;
- BPE: if two overlapping pairs form the same subword, sentencepiece merges the left one, the library the first listed;
- unigram: segmentations whose scores differ only by rounding, and lines that literally contain a symbol or byte in
  sentencepiece's notation, such as <s> or <0x41>: in the pipeline, no subword may extend across its <;
- invalid UTF-8: sentencepiece replaces each invalid byte, but the library replaces a whole run of them at once.
"""

import json
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from nmt import text
from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.files import (
    EMBEDDINGS,
    ModelDescription,
    expected_search,
    parse_json,
    read_description,
    tied,
    whole_folder,
)
from nmt.model import Transformer, load_model
from nmt.plugins.exchange.commands import settings_of_model
from nmt.plugins.exchange.ctranslate2 import heading
from nmt.plugins.exchange.marian import (
    HUB_KEYS,
    SHARED,
    VOCABULARY,
    Weights,
    halves,
    layer_table,
    rows_of,
)
from nmt.plugins.exchange.normalization import tokenizers_steps
from nmt.plugins.exchange.supported import HUGGINGFACE
from nmt.text import MARIAN_SYMBOLS, MarianTokenizer

MIN_POSITIONS = 1024
TYPICAL_LENGTH = 20
"""Translation length in tokens at which the two length penalties grow equally fast."""
TOKENS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}
# Unigram would also match its symbol and byte entries in text, so text is split inside such matches.
SPELT_SYMBOL = Regex("<(?=0x[0-9A-F]{2}>|/?s>|pad>|unk>)")


def write(folder: Path, output: Path) -> None:
    """Export a model directory for transformers, replacing any folder; NMTError if Marian cannot express the model."""
    description = read_description(folder)
    tokenizer = text.read_tokenizer(folder)
    HUGGINGFACE.check(settings_of_model(description, tokenizer))
    model = load_model(folder)
    files = {"README.md": (heading(description) + usage_of(description)).encode()}
    files["model.safetensors"] = save(weights_of(model, tokenizer), {"format": "pt"})
    trees = settings(description, tokenizer)
    if isinstance(tokenizer, MarianTokenizer):
        trees["vocab.json"] = {
            entry: number for number, entry in enumerate(marian_table(tokenizer))
        }
        files |= zip(("source.spm", "target.spm"), tokenizer.models, strict=True)
    else:
        files["tokenizer.json"] = fast_tokenizer(tokenizer).to_str().encode()
    for name, tree in trees.items():
        files[name] = (json.dumps(tree, ensure_ascii=False, indent=2) + "\n").encode()
    with whole_folder(output) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)


def export(folder: Path, output: Path, config: Any, status: Any) -> list[str]:
    write(folder, output)
    return []


USAGE = """
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model = AutoModelForSeq2SeqLM.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")


def translate(line):
    source = tokenizer(line, return_tensors="pt")
    length = source["input_ids"].shape[1]
    if length == 1:  # only the end symbol
        return ""
    longest = min(length + {extra} + 1, {positions})
    [tokens] = model.generate(**source, max_length=longest)
    return " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split())


print(translate("A line of text."))
```

`translate` works like `nmt translate split=never protect=none`, except that

- transformers compares hypotheses by log P(Y|X) / |Y|^{beta:.3g}, nmt by log P(Y|X) / {penalty}
- transformers always finds an end at the maximum length and does not count its log P
- nmt copies lines without letters, and characters that the training data lacks
- nmt reads some such characters as similar ones, such as an uppercase letter as the lowercase one
- transformers fails for lines of {positions} or more subwords, nmt reports them

By default, `nmt translate` also splits lines into sentences and protects items such as URLs.
"""


def weights_of(model: Transformer, tokenizer: text.Tokenizer) -> Weights:
    """The weights, keyed by their transformers names, in Marian's order."""
    ours, config = (
        {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()},
        model.config,
    )
    order_D, weights = torch.from_numpy(halves(config.d_model)), Weights()
    for row in layer_table(config):
        tensor = ours.get(row.ours, torch.zeros(row.shape))  # zeros for missing biases
        tensor = row.reordered(tensor, order_D)
        weights |= zip(row.transformers, tensor.chunk(len(row.transformers)), strict=True)
    ids: Any = slice(None)
    if isinstance(tokenizer, MarianTokenizer):
        id_of = {
            row: id for id, row in enumerate(rows_of(marian_table(tokenizer), has_padding=True))
        }
        ids = [id_of[row] for row in range(len(id_of))]

    def in_order(vocabulary: Tensor) -> Tensor:
        # transformers starts decoding from the start symbol's row; our decoder may start from zeros.
        return (
            vocabulary.index_fill(0, torch.tensor([BOS]), 0) if config.zero_start else vocabulary
        )[ids]

    weights[VOCABULARY[-1]] = in_order(ours.get("output.bias", torch.zeros(model.vocabulary_size)))[
        None
    ]
    shared = len(tied(config)) == len(EMBEDDINGS)
    matrices = (
        {SHARED: EMBEDDINGS[-1]} if shared else dict(zip(VOCABULARY, EMBEDDINGS, strict=False))
    )
    weights |= {theirs: in_order(ours[name])[:, order_D] for theirs, name in matrices.items()}
    return {name: weight.clone() for name, weight in weights.items()}


def marian_table(tokenizer: MarianTokenizer) -> list[str]:
    """The target vocabulary in Marian's order, including <pad>."""
    return list(dict.fromkeys((*tokenizer.tables[-1], MARIAN_SYMBOLS[2])))


def fast_tokenizer(ours: text.Tokenizer) -> tokenizers.Tokenizer:
    """A pipeline that converts raw lines to our ids, followed by the end symbol, and back."""
    cleaning = tokenizers_steps(ours.normalization)
    if isinstance(ours, text.SentencePieceTokenizer):
        pipeline = from_sentencepiece(ours, cleaning)
    else:
        assert isinstance(ours, text.WordPieceTokenizer)
        tree = parse_json(ours.content)
        tree.pop(text.OF_WORDPIECE, None)
        pipeline = tokenizers.Tokenizer.from_str(json.dumps(tree))
        pipeline.normalizer = normalizers.Sequence(cleaning)
        pipeline.decoder = decoders.Sequence(
            [decoders.Replace(text.CONTINUES, ""), decoders.ByteLevel()]
        )
    end = text.SYMBOLS[EOS]
    pipeline.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, EOS)]
    )
    pipeline.add_special_tokens(
        [AddedToken(symbol, special=True, normalized=False) for symbol in text.SYMBOLS]
    )
    return pipeline


def from_sentencepiece(
    ours: text.SentencePieceTokenizer, cleaning: list[normalizers.Normalizer]
) -> tokenizers.Tokenizer:
    model = ours.parsed()
    subwords = [(subword.piece, subword.score) for subword in model.pieces]
    if model.trainer_spec.model_type == model.trainer_spec.UNIGRAM:
        pipeline = tokenizers.Tokenizer(
            models.Unigram(subwords, model.trainer_spec.unk_id, byte_fallback=True)
        )
        pipeline.pre_tokenizer = pre_tokenizers.Split(SPELT_SYMBOL, "merged_with_previous")
    else:
        normal = {subword.piece for subword in model.pieces if subword.type == subword.NORMAL}
        vocabulary = {subword: number for number, (subword, _) in enumerate(subwords)}
        cuts = ((s[:cut], s[cut:]) for s, _ in subwords if s in normal for cut in range(1, len(s)))
        merges = [pair for pair in cuts if normal.issuperset(pair)]
        pipeline = tokenizers.Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True))
    escapes = [(text.ESCAPE, text.ESCAPE + "0"), (text.META, text.ESCAPE + "1")]
    escape = [normalizers.Replace(plain, escaped) for plain, escaped in escapes]
    spaces = [normalizers.Replace(" ", text.META), normalizers.Prepend(text.META)]
    pipeline.normalizer = normalizers.Sequence([*cleaning, *escape, *spaces])
    join = [
        decoders.Replace(text.META, " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    restore = [decoders.Replace(escaped, plain) for plain, escaped in reversed(escapes)]
    pipeline.decoder = decoders.Sequence([*join, *restore])
    return pipeline


def usage_of(description: ModelDescription) -> str:
    """The part of README.md on how to translate, and how the results differ from nmt's."""
    decode = expected_search(DecodeConfig(), description)
    is_marian = decode.length_penalty_kind == "marian"
    length = "|Y|" if is_marian else "((5 + |Y|) / 6)"
    return USAGE.format(
        extra=decode.max_extra_length,
        positions=position_count(ModelConfig(**description.model)),
        beta=exported_penalty(decode),
        penalty=f"{length}^{decode.length_penalty:.3g}",
    )


def position_count(model: ModelConfig) -> int:
    """Number of positions of the exported model."""
    return max(MIN_POSITIONS, model.max_positions)


def exported_penalty(decode: DecodeConfig) -> float:
    """The exponent beta of transformers' length penalty.

    At the typical length, |Y|^beta grows as fast as ((5 + |Y|) / 6)^alpha.
    """
    if decode.length_penalty_kind == "marian":
        return decode.length_penalty
    return decode.length_penalty * TYPICAL_LENGTH / (5 + TYPICAL_LENGTH)


def settings(description: ModelDescription, tokenizer: text.Tokenizer) -> dict[str, dict[str, Any]]:
    """The settings for transformers, keyed by file name."""
    model, size, ids = (
        ModelConfig(**description.model),
        description.vocabulary_size,
        {**TOKENS, "decoder_start": BOS},
    )
    positions = position_count(model)
    decode = expected_search(DecodeConfig(), description)
    if isinstance(tokenizer, MarianTokenizer):
        table = marian_table(tokenizer)
        size, (end, unknown, padding) = len(table), map(table.index, MARIAN_SYMBOLS)
        ids = {"pad": padding, "bos": end, "eos": end, "unk": unknown, "decoder_start": padding}
        languages = {"source_lang": description.source, "target_lang": description.target}
        of_tokenizer = {
            "tokenizer_class": "MarianTokenizer",
            **languages,
            "model_max_length": positions,
        }
    else:
        of_tokenizer = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{kind}_token": text.SYMBOLS[number] for kind, number in TOKENS.items()},
            **{"model_input_names": ["input_ids", "attention_mask"], "model_max_length": positions},
            **{
                "padding_side": "right",
                "clean_up_tokenization_spaces": False,
                "split_special_tokens": True,
            },
        }
    tokens = {f"{kind}_token_id": number for kind, number in ids.items() if kind != "unk"}
    tokens["forced_eos_token_id"] = ids["eos"]
    of_model = {
        **{"exported_by": "nmt", "model_type": "marian", "architectures": ["MarianMTModel"]},
        **{
            "is_encoder_decoder": True,
            "share_encoder_decoder_embeddings": len(tied(model)) == len(EMBEDDINGS),
        },
        **{
            "tie_word_embeddings": model.tied_embeddings,
            "scale_embedding": True,
            "torch_dtype": "float32",
        },
        **{theirs: getattr(model, ours) for theirs, ours in HUB_KEYS.items()},
        **{
            "vocab_size": size,
            "decoder_vocab_size": size,
            **tokens,
            "max_position_embeddings": positions,
        },
    }
    generation = {
        **{"num_beams": decode.beam_size, "do_sample": False, "early_stopping": "never"},
        **{"length_penalty": exported_penalty(decode), **tokens, "max_length": positions},
        "suppress_tokens": sorted({ids["pad"], ids["decoder_start"], ids["unk"]}),
    }
    return {
        "config.json": of_model,
        "generation_config.json": generation,
        "tokenizer_config.json": of_tokenizer,
    }
