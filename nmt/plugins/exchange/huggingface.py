"""A model directory as a MarianMTModel of Hugging Face transformers, tokenizer included.

AutoModelForSeq2SeqLM and AutoTokenizer load it, and its logits equal ours up to rounding. Differences:

- The order of the width, and of the vocabulary of an imported model: see marian_weights.py.
- Marian's attention and logits have biases; where the model has none, they are written as zeros.
- The sinusoids of transformers are the paper's, its epsilon is 1e-5, and its <pad>, from which the decoder starts, is
  part of the softmax. So a model that was trained by Marian itself differs there: by some 1e-4 in log P of a token.
- Marian has a last position: MIN_POSITIONS tokens or the model's max_positions. Sinusoids here have none.
- The search of transformers divides log P(Y|X) by |Y|^beta, as Marian does, instead of ((5 + |Y|) / 6)^alpha. Its beta
  is chosen such that both grow equally fast at a typical length.
- If the maximal length forces the end symbol, its log probability is not counted.
- The tokenizer, if it is not an imported one: see huggingface_tokenizer.py.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, require
from nmt.errors import NMTError, how_to_install, one_line
from nmt.files import (
    EMBEDDINGS,
    ModelDescription,
    expected_search,
    load_model,
    parse_json,
    plain,
    read_description,
    read_mapping,
    read_tokenizer,
    tied,
    whole_folder,
)
from nmt.model import Transformer, sinusoids
from nmt.plugins.exchange.certificate import Scores
from nmt.plugins.exchange.foreign_model import Foreign
from nmt.plugins.exchange.huggingface_tokenizer import fast_tokenizer
from nmt.plugins.exchange.marian_weights import Weights, halves, ids_of, layers_to_marian, rows_of
from nmt.search import Pair
from nmt.text import MARIAN_SYMBOLS, SOURCE, SYMBOLS, TARGET, MarianTokenizer, Tokenizer

MIN_POSITIONS = 1024
TOKENS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}
TYPICAL_LENGTH = 20
"""Tokens of a translation at which the two length penalties grow equally fast."""
LINES_AT_ONCE = 16
MARIANS_EPSILON = 1e-6
"""Added to the variance in LayerNorm by Marian itself."""


def check(description: ModelDescription) -> None:
    """Raise NMTError if Marian cannot express the model."""
    model = ModelConfig(**description.model)
    imported = model.zero_start and model.positions == "tensor2tensor" and model.norm_epsilon == MARIANS_EPSILON
    for expressible, found, only in (
        (model.norm == "post", f"model.norm={model.norm}", "post-norm layers"),
        (model.positions == "sinusoidal" or imported, f"model.positions={model.positions}", "the paper's sinusoids"),
        (model.norm_epsilon == 1e-5 or imported, f"model.norm_epsilon={model.norm_epsilon}", "1e-5"),
        (model.source_vocabulary_size in (None, description.vocabulary_size),
         f"model.source_vocabulary_size={model.source_vocabulary_size}", "one <pad>, and thus one vocabulary,"),
        (model.d_k == model.d_v == model.d_model / model.heads, f"model.d_k={model.d_k}, model.d_v={model.d_v}",
         f"d_k = d_v = d_model / heads = {model.d_model} / {model.heads}"),
        (model.attention == "scaled_dot_product", f"model.attention={model.attention}", "scaled_dot_product"),
        (model.source_end, f"model.source_end={model.source_end}", "sources with an end symbol"),
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
    tokenizer, model = read_tokenizer(folder), load_model(folder)
    marians = isinstance(tokenizer, MarianTokenizer)
    require(
        marians == bool(model.config.unpredicted),
        f"model.zero_start={model.config.zero_start}: format=huggingface has it with Marian's tokenizer, and only then",
    )
    weights = marian_weights(model, tokenizer)
    try:
        with whole_folder(output) as temporary:
            save_file(weights, temporary / "model.safetensors", {"format": "pt"})
            for name, content in tokenizer_files(tokenizer).items():
                (temporary / name).write_bytes(content)
            for name, tree in settings(description, tokenizer).items():
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


def marian_weights(model: Transformer, tokenizer: Tokenizer) -> Weights:
    """The weights under Marian's names, in Marian's order; the model is one that `check` accepts."""
    ours, config = model.state_dict(), model.config
    weights = layers_to_marian(ours, config)
    rows = ids_of(tokenizer.tables[-1]) if isinstance(tokenizer, MarianTokenizer) else slice(None)
    bias = ours.get("output.bias", torch.zeros(model.vocabulary_size))
    weights["final_logits_bias"] = without_start(bias, config)[rows][None]
    names = {"source_embedding": "model.encoder.embed_tokens", "target_embedding": "model.decoder.embed_tokens"}
    shared = len(tied(config)) == len(EMBEDDINGS)
    for own, theirs in {"output": "model.shared"}.items() if shared else {**names, "output": "lm_head"}.items():
        weights[f"{theirs}.weight"] = without_start(ours[f"{own}.weight"], config)[rows][:, halves(config.d_model)]
    return {name: weight.detach().cpu().clone() for name, weight in weights.items()}


def without_start(vocabulary: Tensor, config: ModelConfig) -> Tensor:
    """A row for each id, for the start symbol zeros if the decoder starts from them; transformers takes its row."""
    start = torch.arange(len(vocabulary), device=vocabulary.device) == BOS
    return vocabulary.masked_fill(start.view(-1, *[1] * (vocabulary.dim() - 1)), 0) if config.zero_start else vocabulary


def tokenizer_files(tokenizer: Tokenizer) -> dict[str, bytes]:
    """File names -> their content; an imported tokenizer's are those of MarianTokenizer."""
    if not isinstance(tokenizer, MarianTokenizer):
        return {"tokenizer.json": fast_tokenizer(tokenizer).to_str().encode()}
    ids = {entry: number for number, entry in enumerate(marian_table(tokenizer))}
    models = dict(zip(("source.spm", "target.spm"), tokenizer.models, strict=True))
    return {**models, "vocab.json": json.dumps(ids, ensure_ascii=False, indent=2).encode()}


def marian_table(tokenizer: MarianTokenizer) -> list[str]:
    """The vocabulary in Marian's order, with <pad>."""
    table, padding = tokenizer.tables[-1], MARIAN_SYMBOLS[2]
    return table if padding in table else [*table, padding]


def symbols(tokenizer: Tokenizer) -> dict[str, int]:
    """The ids that transformers has for the special symbols, by their kinds."""
    if not isinstance(tokenizer, MarianTokenizer):
        return {**TOKENS, "decoder_start": BOS}
    end, unknown, padding = map(marian_table(tokenizer).index, MARIAN_SYMBOLS)
    return {"pad": padding, "bos": end, "eos": end, "unk": unknown, "decoder_start": padding}


def settings(description: ModelDescription, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """File names -> the settings that transformers reads from them."""
    ids = symbols(tokenizer)
    tokens = {f"{kind}_token_id": number for kind, number in ids.items() if kind != "unk"}
    tokens["forced_eos_token_id"] = ids["eos"]
    positions = max(MIN_POSITIONS, ModelConfig(**description.model).max_positions)
    decode = expected_search(DecodeConfig(), description)
    size = len(marian_table(tokenizer)) if isinstance(tokenizer, MarianTokenizer) else description.vocabulary_size
    sizes = {"vocab_size": size, "decoder_vocab_size": size}
    return {
        "config.json": {**model_settings(description), **sizes, **tokens, "max_position_embeddings": positions},
        "generation_config.json": {**search_settings(decode, ids), **tokens, "max_length": positions},
        "tokenizer_config.json": tokenizer_settings(description, tokenizer, positions),
    }


def tokenizer_settings(description: ModelDescription, tokenizer: Tokenizer, positions: int) -> dict[str, Any]:
    """tokenizer_config.json."""
    if isinstance(tokenizer, MarianTokenizer):
        languages = {"source_lang": description.source, "target_lang": description.target}
        return {"tokenizer_class": "MarianTokenizer", **languages, "model_max_length": positions}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{kind}_token": SYMBOLS[number] for kind, number in TOKENS.items()},
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": positions,
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }


def model_settings(description: ModelDescription) -> dict[str, Any]:
    model = ModelConfig(**description.model)
    return {
        "exported_by": "nmt",
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "share_encoder_decoder_embeddings": len(tied(model)) == len(EMBEDDINGS),
        "tie_word_embeddings": model.tied_embeddings,
        "scale_embedding": True,
        "d_model": model.d_model,
        "encoder_layers": model.encoder_layers,
        "encoder_attention_heads": model.heads,
        "encoder_ffn_dim": model.d_ff,
        "decoder_layers": model.decoder_layers,
        "decoder_attention_heads": model.heads,
        "decoder_ffn_dim": model.d_ff,
        "activation_function": model.activation,
        "dropout": model.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "torch_dtype": "float32",
    }


def search_settings(decode: DecodeConfig, ids: dict[str, int]) -> dict[str, Any]:
    """The settings of transformers' search that are closest to ours, without the limits of length."""
    # At the typical length, |Y|^beta grows as fast as ((5 + |Y|) / 6)^alpha.
    share = 1 if decode.length_penalty_kind == "marian" else TYPICAL_LENGTH / (5 + TYPICAL_LENGTH)
    beta = decode.length_penalty * share
    return {
        "num_beams": decode.beam_size,
        "do_sample": False,
        **({"length_penalty": beta, "early_stopping": "never"} if decode.beam_size > 1 else {}),
        "suppress_tokens": sorted({ids["pad"], ids["decoder_start"], ids["unk"]}),
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


def library() -> Any:
    """The library transformers; NMTError where it is not installed."""
    try:
        import transformers
        from transformers.utils import logging
    except ImportError as error:
        raise NMTError(f"transformers is missing; {how_to_install('huggingface')}") from error
    logging.disable_progress_bar()
    return transformers


def load(output: Path) -> tuple[Any, Any]:
    """The exported model and tokenizer, by transformers."""
    transformers = library()
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(output), local_files_only=True).eval()
    return model, transformers.AutoTokenizer.from_pretrained(str(output), local_files_only=True)


def original(found: Foreign) -> tuple[Any, Any]:
    """The model and tokenizer of a MarianMT folder, by transformers.

    The configuration is made of what we read: transformers' own reader would load whatever code a stranger names.
    """
    transformers, tables, own = library(), found.tokenizer.tables, found.settings
    padding, sizes = tables[-1].index(MARIAN_SYMBOLS[2]), (len(tables[0]), len(tables[-1]))
    config = transformers.MarianConfig(
        **{key: own[key] for key in ("d_model", "encoder_layers", "decoder_layers")},
        **{f"{stack}_attention_heads": own["heads"] for stack in ("encoder", "decoder")},
        **{f"{stack}_ffn_dim": own["d_ff"] for stack in ("encoder", "decoder")},
        activation_function=own["activation"],
        **dict(zip(("vocab_size", "decoder_vocab_size"), sizes, strict=True)),
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        scale_embedding=True,
        pad_token_id=min(padding, *sizes),
        decoder_start_token_id=padding,
        **dict.fromkeys(("eos_token_id", "forced_eos_token_id"), tables[-1].index(MARIAN_SYMBOLS[0])),
    )
    model = transformers.MarianMTModel(config).eval()
    problems = model.load_state_dict({name: weight.float() for name, weight in found.weights.items()}, strict=False)
    assert all("embed_positions" in name for name in (*problems.missing_keys, *problems.unexpected_keys))
    numbers = (json.dumps({entry: number for number, entry in enumerate(table)}).encode() for table in tables)
    keys = ("source_spm", "target_spm", "vocab", "target_vocab_file")
    with TemporaryDirectory() as folder:
        files = {key: Path(folder, key) for key in keys[: 2 + len(tables)]}
        for path, content in zip(files.values(), (*found.tokenizer.models, *numbers), strict=True):
            path.write_bytes(content)
        paths = {key: str(path) for key, path in files.items()}
        tokenizer = transformers.MarianTokenizer(**paths, separate_vocabs=len(tables) == 2)
    return model, tokenizer


@torch.no_grad()
def computing_as_marian(model: Any) -> Any:
    """A model of transformers with the sinusoids and the epsilon of Marian, and without <pad> in the softmax."""
    for stack in (model.model.encoder, model.model.decoder):
        rows, width = stack.embed_positions.weight.shape
        stack.embed_positions.weight.copy_(sinusoids(rows, width, 0, "tensor2tensor")[:, halves(width)])
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = MARIANS_EPSILON
    model.final_logits_bias[0, model.config.decoder_start_token_id] = -torch.inf
    return model


@torch.inference_mode()
def scores(model: Any, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Scores:
    """The log probabilities that a model of transformers gives to pairs of our ids."""
    rows = [list(range(tokenizer.source_vocabulary_size or tokenizer.vocabulary_size)) for _ in (SOURCE, TARGET)]
    if isinstance(tokenizer, MarianTokenizer):
        tables = tokenizer.tables if len(tokenizer.tables) == 2 else [marian_table(tokenizer)] * 2
        rows = [rows_of(table, has_padding=True) for table in tables]
    found = []
    for source, target in pairs:
        ids, tokens = ([rows[side][id] for id in (*own, EOS)] for side, own in enumerate((source, target)))
        inputs = torch.tensor([[model.config.decoder_start_token_id, *tokens[:-1]]])
        logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=inputs).logits[0]
        found.append(logits.log_softmax(dim=1).gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist())
    return found


def translate(model: Any, tokenizer: Any, lines: list[str], decode: DecodeConfig) -> list[str]:
    """Translations of raw lines by a model and tokenizer of transformers.

    Raises NMTError for a line with more tokens than the model has positions.
    """
    assert not decode.do_sample, "transformers would draw other random numbers"
    positions = model.config.max_position_embeddings
    special = {kind: getattr(model.config, f"{kind}_token_id") for kind in ("pad", "decoder_start")}
    special["unk"] = tokenizer.unk_token_id
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
                **search_settings(decode, special),
            )
            for index, text in zip(batch, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
                translations[index] = " ".join(text.split())
    return translations
