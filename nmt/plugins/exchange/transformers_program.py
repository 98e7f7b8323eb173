"""Hugging Face transformers with a model, exported or as it was read, to compare with ours."""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from nmt.config import EOS, DecodeConfig, ModelConfig, require
from nmt.errors import NMTError, how_to_install
from nmt.files import read_description
from nmt.model import sinusoids
from nmt.plugins.exchange.foreign import Scores, Weights
from nmt.plugins.exchange.marian_weights import COMPUTED_BY, rows_of
from nmt.plugins.exchange.names import halves
from nmt.search import Pair
from nmt.text import MARIAN_SYMBOLS, SOURCE, TARGET, MarianTokenizer, Tokenizer, read_tokenizer

TYPICAL_LENGTH = 20
"""Tokens of a translation at which the two length penalties grow equally fast."""
LINES_AT_ONCE = 16


def library() -> Any:
    """The library transformers; NMTError where it is not installed."""
    try:
        import transformers
        from transformers.utils import logging
    except ImportError as error:
        raise NMTError(f"transformers is missing; {how_to_install('huggingface')}") from error
    logging.disable_progress_bar()
    return transformers


def exported(folder: Path, output: Path, decode: DecodeConfig) -> "TransformersProgram":
    """The model in the folder that a model directory was exported to."""
    kinds = library().AutoModelForSeq2SeqLM, library().AutoTokenizer
    model, tokenizer = (kind.from_pretrained(str(output), local_files_only=True) for kind in kinds)
    by_marian = read_description(folder).model.get("positions") == "tensor2tensor"
    return TransformersProgram(model.eval(), tokenizer, read_tokenizer(folder), decode, by_marian)


def original(
    config: ModelConfig, weights: Weights, ours: MarianTokenizer, decode: DecodeConfig
) -> "TransformersProgram":
    """The model of a MarianMT folder.

    Its configuration is made of what we read: transformers' own reader would load whatever code a stranger names.
    """
    transformers, tables = library(), ours.tables
    padding, sizes = tables[-1].index(MARIAN_SYMBOLS[2]), (len(tables[0]), len(tables[-1]))
    settings = transformers.MarianConfig(
        **{key: getattr(config, key) for key in ("d_model", "encoder_layers", "decoder_layers")},
        **{f"{stack}_attention_heads": config.heads for stack in ("encoder", "decoder")},
        **{f"{stack}_ffn_dim": config.d_ff for stack in ("encoder", "decoder")},
        activation_function=config.activation,
        **dict(zip(("vocab_size", "decoder_vocab_size"), sizes, strict=True)),
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        scale_embedding=True,
        pad_token_id=min(padding, *sizes),
        decoder_start_token_id=padding,
        **dict.fromkeys(("eos_token_id", "forced_eos_token_id"), tables[-1].index(MARIAN_SYMBOLS[0])),
    )
    model = transformers.MarianMTModel(settings).eval()
    problems = model.load_state_dict({name: weight.float() for name, weight in weights.items()}, strict=False)
    assert all("embed_positions" in name for name in (*problems.missing_keys, *problems.unexpected_keys))
    numbers = (json.dumps({entry: number for number, entry in enumerate(table)}).encode() for table in tables)
    with TemporaryDirectory() as folder:
        names = ("source_spm", "target_spm", "vocab", "target_vocab_file")
        paths = {name: str(Path(folder, name)) for name in names[: 2 + len(tables)]}
        for path, content in zip(paths.values(), (*ours.models, *numbers), strict=True):
            Path(path).write_bytes(content)
        tokenizer = transformers.MarianTokenizer(**paths, separate_vocabs=len(tables) == 2)
    return TransformersProgram(model, tokenizer, ours, decode, by_marian=config.zero_start)


@torch.no_grad()
def computing_as_marian(model: Any) -> Any:
    """A model with the sinusoids and the epsilon of Marian, and without <pad> in the softmax."""
    model, marian = deepcopy(model), COMPUTED_BY["marian"]
    for stack in (model.model.encoder, model.model.decoder):
        length, width = stack.embed_positions.weight.shape
        stack.embed_positions.weight.copy_(sinusoids(length, width, 0, marian["positions"])[:, halves(width)])
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = marian["norm_epsilon"]
    model.final_logits_bias[0, model.config.decoder_start_token_id] = -torch.inf
    return model


def marian_table(tokenizer: MarianTokenizer) -> list[str]:
    """The target's vocabulary in Marian's order, with <pad>."""
    table, padding = tokenizer.tables[-1], MARIAN_SYMBOLS[2]
    return table if padding in table else [*table, padding]


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


@dataclass
class TransformersProgram:
    """A model and a tokenizer of transformers, beside our tokenizer."""

    model: Any
    tokenizer: Any
    ours: Tokenizer
    decode: DecodeConfig
    by_marian: bool
    """True for a model that Marian trained, which transformers computes in another way."""
    name: str = "transformers"

    def scores(self, pairs: Sequence[Pair]) -> Iterator[tuple[str, Scores]]:
        """The log probabilities, also with what Marian computes in another way."""
        origin, model = "that of transformers", self.model
        if self.by_marian:
            other = f"{origin}, whose sinusoids, epsilon and <pad> are not those of the training,"
            yield other, self.log_probabilities(model, pairs)
            origin, model = f"{origin}, given those of Marian,", computing_as_marian(model)
        yield origin, self.log_probabilities(model, pairs)

    @torch.inference_mode()
    def log_probabilities(self, model: Any, pairs: Sequence[Pair]) -> Scores:
        rows = [list(range(self.ours.vocabulary_size))] * 2
        if isinstance(self.ours, MarianTokenizer):
            tables = self.ours.tables if len(self.ours.tables) == 2 else [marian_table(self.ours)] * 2
            rows = [rows_of(table, has_padding=True) for table in tables]
        scores = []
        for pair in pairs:
            source, target = ([rows[side][id] for id in (*pair[side], EOS)] for side in (SOURCE, TARGET))
            inputs = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
            logits = model(input_ids=torch.tensor([source]), decoder_input_ids=inputs).logits[0]
            scores.append(logits.log_softmax(dim=1).gather(1, torch.tensor(target)[:, None])[:, 0].tolist())
        return scores

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translations of raw lines; NMTError for a line with more tokens than the model has positions."""
        decode, config = self.decode, self.model.config
        positions = config.max_position_embeddings
        special = {kind: getattr(config, f"{kind}_token_id") for kind in ("pad", "decoder_start")}
        settings = search_settings(decode, {**special, "unk": self.tokenizer.unk_token_id})
        sentences = [self.tokenizer(line, verbose=False)["input_ids"] if line.strip() else [] for line in lines]
        for number, ids in enumerate(sentences, 1):
            problem = f"line {number}: {len(ids)} tokens, but Marian's positions end at {positions}"
            require(len(ids) <= positions, problem)
        translations = [""] * len(lines)
        by_length = sorted(filter(sentences.__getitem__, range(len(lines))), key=lambda index: len(sentences[index]))
        # A call of generate has one maximal length, so sentences are grouped by their lengths.
        for length, group in groupby(by_length, lambda index: len(sentences[index])):
            indices = list(group)
            limit = min(length + decode.max_extra_length, (decode.max_length or positions) + 1, positions)
            for batch in (indices[i : i + LINES_AT_ONCE] for i in range(0, len(indices), LINES_AT_ONCE)):
                ids = torch.tensor([sentences[index] for index in batch])
                tokens = self.model.generate(ids, max_length=limit + 1, **settings)  # the start symbol counts
                texts = self.tokenizer.batch_decode(tokens, skip_special_tokens=True)
                for index, text in zip(batch, texts, strict=True):
                    translations[index] = " ".join(text.split())
        return translations
