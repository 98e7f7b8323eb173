"""The JSON files with which transformers loads an exported model."""

from dataclasses import dataclass
from typing import Any

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.files import EMBEDDINGS, ModelDescription, expected_search, tied
from nmt.plugins.exchange.hub_weights import Weights
from nmt.plugins.exchange.marian_hub import HUB_KEYS
from nmt.text import MARIAN_SYMBOLS, SYMBOLS, MarianTokenizer, Tokenizer

# transformers computes the table of sinusoids, so a larger one costs nothing to store.
SHORTEST_LIMIT = 1024
"""The lowest length limit of an export, in positions, if the model has a lower one or none."""
PEGASUS_KEYS = {
    "normalize_before": True,
    "add_final_layer_norm": True,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
"""Keys of config.json in Pegasus models, which programs other than transformers read."""
# About the average length of a sentence.
TYPICAL_LENGTH = 20
"""Translation length in tokens at which the two length penalties grow equally fast."""


@dataclass(frozen=True)
class HubExport:
    """What the folder of an export contains."""

    weights: Weights
    trees: dict[str, dict[str, Any]]
    """The JSON files, keyed by name."""
    files: dict[str, bytes]
    """The other files, keyed by name."""
    usage: str
    """The part of README.md on how to translate."""


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of tokens with a special meaning."""

    padding: int
    begin: int
    end: int
    unknown: int
    decoder_start: int

    def settings(self) -> dict[str, int]:
        """The keys that a model and its search have in common."""
        return {
            "pad_token_id": self.padding,
            "bos_token_id": self.begin,
            "eos_token_id": self.end,
            "decoder_start_token_id": self.decoder_start,
            # At the maximum length, transformers ends each hypothesis.
            "forced_eos_token_id": self.end,
        }


def settings(description: ModelDescription, tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """The settings for transformers, keyed by file name."""
    model = ModelConfig(**description.model)
    decode = expected_search(DecodeConfig(), description)
    positions = position_count(model)
    if isinstance(tokenizer, MarianTokenizer):
        table = marian_table(tokenizer)
        size = len(table)
        tokens = tokens_of_marian(table)
        of_tokenizer = {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": description.source,
            "target_lang": description.target,
            "model_max_length": positions,
        }
    else:
        size = description.vocabulary_size
        tokens = SpecialTokens(PAD, BOS, EOS, UNK, decoder_start=BOS)
        of_tokenizer = settings_of_pipeline(positions)
    return {
        "config.json": settings_of_model(model, size, tokens),
        "generation_config.json": settings_of_search(decode, positions, tokens),
        "tokenizer_config.json": of_tokenizer,
    }


def settings_of_model(model: ModelConfig, size: int, tokens: SpecialTokens) -> dict[str, Any]:
    are_all_tied = len(tied(model)) == len(EMBEDDINGS)
    if model.norm == "pre":
        of_class = {
            "model_type": "pegasus",
            "architectures": ["PegasusForConditionalGeneration"],
            # transformers ties all three matrices or none.
            "tie_word_embeddings": are_all_tied,
            **PEGASUS_KEYS,
        }
    else:
        of_class = {
            "model_type": "marian",
            "architectures": ["MarianMTModel"],
            "share_encoder_decoder_embeddings": are_all_tied,
            "tie_word_embeddings": model.tied_embeddings,
            "decoder_vocab_size": size,
        }
    return {
        "exported_by": "nmt",
        **of_class,
        **architecture_keys(model),
        "vocab_size": size,
        **tokens.settings(),
        "max_position_embeddings": position_count(model),
    }


def architecture_keys(model: ModelConfig) -> dict[str, Any]:
    """The keys of config.json that all classes have in common."""
    return {
        "is_encoder_decoder": True,
        # Embeddings are multiplied by sqrt(d_model) (section 3.4).
        "scale_embedding": True,
        "torch_dtype": "float32",
        # transformers drops whole layers in training by default.
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        **{theirs: getattr(model, ours) for theirs, ours in HUB_KEYS.items()},
    }


def settings_of_search(
    decode: DecodeConfig,
    positions: int,
    tokens: SpecialTokens,
) -> dict[str, Any]:
    # nmt's search does not write these symbols either.
    symbols = {tokens.padding, tokens.begin, tokens.decoder_start, tokens.unknown}
    # Decoding may start with the end symbol, or its id may serve as that of a missing symbol.
    suppressed = symbols - {tokens.end}
    return {
        "num_beams": decode.beam_size,
        "do_sample": False,
        # As in nmt, the search continues while an unfinished hypothesis may still win.
        "early_stopping": "never",
        "length_penalty": exported_penalty(decode),
        **tokens.settings(),
        "max_length": positions,
        "suppress_tokens": sorted(suppressed),
    }


def settings_of_pipeline(positions: int) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SYMBOLS[PAD],
        "bos_token": SYMBOLS[BOS],
        "eos_token": SYMBOLS[EOS],
        "unk_token": SYMBOLS[UNK],
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": positions,
        "padding_side": "right",
        # transformers would remove blanks before punctuation.
        "clean_up_tokenization_spaces": False,
        # Otherwise, text that spells a symbol would become that symbol.
        "split_special_tokens": True,
    }


def marian_table(tokenizer: MarianTokenizer) -> list[str]:
    """The target vocabulary in Marian's order, including <pad>."""
    # A copy, because <pad> may be appended.
    table: list[str] = list(tokenizer.tables[-1])
    padding = MARIAN_SYMBOLS[2]
    if padding not in table:
        table.append(padding)
    return table


def tokens_of_marian(table: list[str]) -> SpecialTokens:
    """The ids in Marian's order; its decoder starts from <pad>, and it has no start symbol."""
    end, unknown, padding = (table.index(symbol) for symbol in MARIAN_SYMBOLS)
    # The begin token is never used, but transformers needs some id for it.
    return SpecialTokens(padding, end, end, unknown, decoder_start=padding)


def position_count(model: ModelConfig) -> int:
    """Number of positions of the exported model."""
    if model.positions == "learned":
        return model.max_positions
    return max(SHORTEST_LIMIT, model.max_positions)


def exported_penalty(decode: DecodeConfig) -> float:
    """The exponent beta of transformers' length penalty.

    At the typical length, |Y|^beta grows as fast as ((5 + |Y|) / 6)^alpha.
    """
    if decode.length_penalty_kind == "marian":
        return decode.length_penalty
    # The derivatives of beta log |Y| and alpha log(5 + |Y|) are equal at this length.
    return decode.length_penalty * TYPICAL_LENGTH / (5 + TYPICAL_LENGTH)
