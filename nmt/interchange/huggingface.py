"""A model directory as a MarianMTModel of Hugging Face transformers, tokenizer included.

AutoModelForSeq2SeqLM and AutoTokenizer load it, and its logits are ours to rounding. What differs:

- Marian keeps sines and cosines in the two halves of the width, where ours alternate, as the paper's do. So all weights
  are written with the width's even places first, then the odd ones: LayerNorm does not see the order.
- Its attention has biases, which are zero here.
- Its positions end, at LEAST_POSITIONS tokens or the model's max_positions. Ours go on.
- The search of transformers divides log P(Y|X) by |Y|^beta and not by ((5 + |Y|) / 6)^alpha. It is given the beta by
  which both grow alike at one length, and `translate` ranks anew what it found.
- Where a limit of length forces the end, that end costs nothing; in `translate` it costs what it costs in ours.
- The tokenizer: see huggingface_tokenizer.py.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.config.rules import require
from nmt.errors import NMTError, how_to_install, one_line
from nmt.interchange.huggingface_tokenizer import fast_tokenizer
from nmt.model_directory.description import ModelDescription, read_description, read_tokenizer
from nmt.search.engine import length_penalty
from nmt.storage.markdown import plain
from nmt.storage.whole import whole_folder
from nmt.text.tokenizers import SYMBOLS

if TYPE_CHECKING:
    from torch import Tensor

LEAST_POSITIONS = 1024
TOKENS = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}
TYPICAL_LENGTH = 20
"""Tokens of a translation, for the settings of the search that are written."""
SEARCHED_AT_ONCE = 8
"""Lines: a search whose scores are asked for keeps the probabilities of all tokens at all its steps."""


def check(description: ModelDescription) -> None:
    """NMTError where Marian cannot express the model."""
    model = described(description)
    require(model.norm == "post", f"model.norm={model.norm}: Marian's layers are post-norm, so this is no model for it")
    require(
        model.positions == "sinusoidal",
        f"model.positions={model.positions}: Marian has sinusoids only, so this is no model for it",
    )
    require(
        model.d_k == model.d_v == model.d_model / model.heads,
        f"model.d_k={model.d_k}, model.d_v={model.d_v}: Marian has d_k = d_v = d_model / heads = "
        f"{model.d_model} / {model.heads} only, so this is no model for it",
    )
    require(
        model.attention == "scaled_dot_product",
        f"model.attention={model.attention}: Marian has scaled_dot_product only, so this is no model for it",
    )
    require(
        model.attention_window is None,
        f"model.attention_window={model.attention_window}: Marian's self-attention sees all positions, so this is no "
        "model for it",
    )


def described(description: ModelDescription) -> ModelConfig:
    try:
        return ModelConfig(**description.model)
    except TypeError as error:
        raise NMTError(f"config.json: describes no model of this nmt ({error})") from error


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
    """Whether there is nothing, an empty folder, or an earlier export."""
    if not output.is_dir():
        return not output.exists()
    try:
        return not any(output.iterdir()) or read_json(output / "config.json").get("exported_by") == "nmt"
    except (OSError, ValueError):
        return False


def read_json(path: Path) -> dict[str, Any]:
    tree = json.loads(path.read_text(encoding="utf-8"))
    return tree if isinstance(tree, dict) else {}


def settings(description: ModelDescription) -> dict[str, dict[str, Any]]:
    """File names -> what transformers reads there."""
    tokens = {f"{kind}_token_id": place for kind, place in TOKENS.items() if kind != "unk"}
    tokens |= {"decoder_start_token_id": BOS, "forced_eos_token_id": EOS}
    positions = max(LEAST_POSITIONS, described(description).max_positions)
    return {
        "config.json": {**model_settings(description), **tokens, "max_position_embeddings": positions},
        "generation_config.json": {
            **search_settings(DecodeConfig(), TYPICAL_LENGTH),
            **tokens,
            "max_length": positions,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{kind}_token": SYMBOLS[place] for kind, place in TOKENS.items()},
            "model_input_names": ["input_ids", "attention_mask"],
            "model_max_length": positions,
            "padding_side": "right",
            "clean_up_tokenization_spaces": False,
            "split_special_tokens": True,
        },
    }


def model_settings(description: ModelDescription) -> dict[str, Any]:
    model = described(description)
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


def exponent(alpha: float, length: int) -> float:
    """The beta by which |Y|^beta grows at a length as fast as ((5 + |Y|) / 6)^alpha does."""
    return alpha * length / (5 + length)


def search_settings(decode: DecodeConfig, length: int) -> dict[str, Any]:
    """What comes nearest to our search for translations of about a length; limits of length are not among it."""
    penalty = {"length_penalty": exponent(decode.length_penalty, length), "early_stopping": "never"}
    return {
        "num_beams": decode.beam_size,
        "do_sample": False,
        **(penalty if decode.beam_size > 1 else {}),
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


class EndAtLimit:
    """For `generate`: after so many tokens, the start symbol counted, there is only the end symbol."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, tokens: "Tensor", scores: "Tensor") -> "Tensor":
        if tokens.shape[1] < self.limit:
            return scores
        ended = scores.new_full(scores.shape, -math.inf)
        ended[:, EOS] = scores[:, EOS]
        return ended


class Searcher:
    """An exported model in transformers, with its tokenizer."""

    def __init__(self, output: Path, decode: DecodeConfig) -> None:
        try:
            from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
            from transformers.utils import logging
        except ImportError as error:
            raise NMTError(f"transformers is missing; {how_to_install('huggingface')}") from error
        require((output / "config.json").is_file(), f"{output}: no exported model there")
        require(not decode.do_sample, "decode.do_sample=true: transformers would draw by other random numbers")
        self.decode = decode
        logging.disable_progress_bar()
        self.model = AutoModelForSeq2SeqLM.from_pretrained(str(output), local_files_only=True).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(str(output), local_files_only=True)

    def search(self, sentences: list[list[int]]) -> list[list[int]]:
        """The best translation of each of some sentences of one length, the end symbol counted in it."""
        import torch

        beams, length = self.decode.beam_size, len(sentences[0])
        limit = min(length + self.decode.max_extra_length, self.model.config.max_position_embeddings)
        limit = min(limit, (self.decode.max_length or limit) + 1)
        found = self.model.generate(
            torch.tensor(sentences),
            logits_processor=[EndAtLimit(limit)],
            max_length=limit + 2,  # never reached: there transformers would end by itself
            num_return_sequences=beams,
            return_dict_in_generate=True,
            output_scores=beams > 1,
            **search_settings(self.decode, length),
        )
        hypotheses = [[token for token in ids if token > UNK] for ids in found.sequences.tolist()]
        if beams == 1:
            return hypotheses
        scores = [
            self.rescored(score, len(tokens) + 1, length)
            for score, tokens in zip(found.sequences_scores.tolist(), hypotheses, strict=True)
        ]
        groups = range(0, len(hypotheses), beams)
        return [hypotheses[max(range(first, first + beams), key=scores.__getitem__)] for first in groups]

    def rescored(self, score: float, tokens: int, length: int) -> float:
        """Our score of what transformers gave a score in a search for translations of about a length."""
        alpha = self.decode.length_penalty
        return float(score * tokens ** exponent(alpha, length) / length_penalty(tokens, alpha))


def translate(output: Path, lines: list[str], decode: DecodeConfig) -> list[str]:
    """What transformers makes of raw lines with an exported model, ranked by our length penalty.

    Raises NMTError for sampling, and for a line of more tokens than the export has positions.
    """
    searcher = Searcher(output, decode)
    sentences = [searcher.tokenizer(line, verbose=False)["input_ids"] if line.strip() else [] for line in lines]
    positions = searcher.model.config.max_position_embeddings
    for number, ids in enumerate(sentences, 1):
        require(len(ids) <= positions, f"line {number}: {len(ids)} tokens, but Marian's positions end at {positions}")
    translations = [""] * len(lines)
    for places in of_one_length(sentences):
        found = searcher.search([sentences[place] for place in places])
        for place, text in zip(places, searcher.tokenizer.batch_decode(found), strict=True):
            translations[place] = " ".join(text.split())
    return translations


def of_one_length(sentences: list[list[int]]) -> Iterator[list[int]]:
    """Places of sentences that are not empty, a few of the same length at a time: their limit is the same too."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, ids in enumerate(sentences):
        by_length[len(ids)].append(place)
    by_length.pop(0, None)
    for places in by_length.values():
        yield from (places[i : i + SEARCHED_AT_ONCE] for i in range(0, len(places), SEARCHED_AT_ONCE))
