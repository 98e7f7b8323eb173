"""nmt's tokenizers as pipelines of the tokenizers library.

transformers' MarianTokenizer cannot spell unknown characters as bytes. A pipeline gives raw lines
the same ids and text as nmt, except for

- characters newer than the library's Unicode tables: Python 3.11 knows 72 that tokenizers 0.23 does
  not;
- BPE: if two overlapping pairs form the same subword, sentencepiece merges the left one, the
  library the first listed;
- unigram: segmentations whose scores differ only by rounding, and lines that literally contain a
  symbol or byte in sentencepiece's notation, such as <s> or <0x41>: in the pipeline, no subword may
  extend across its <;
- tags, which the pipeline recognizes anywhere in a line and nmt only at its beginning;
- invalid UTF-8: sentencepiece replaces each invalid byte, but the library replaces a whole run of
  them at once.
"""

import json
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from nmt import text
from nmt.config import EOS
from nmt.files import parse_json
from nmt.plugins.exchange.normalization import tokenizers_steps

# Unigram would also match its symbol and byte entries in text, so text is split inside such
# matches.
SPELT_SYMBOL = Regex("<(?=0x[0-9A-F]{2}>|/?s>|pad>|unk>)")
ESCAPES = (
    (text.ESCAPE, text.ESCAPE + "0"),
    (text.META, text.ESCAPE + "1"),
)
"""Characters with a special meaning, and how text spells them. ESCAPE comes first, because the
second step writes it."""


def fast_tokenizer(ours: text.Tokenizer) -> tokenizers.Tokenizer:
    """A pipeline that converts raw lines to our ids, followed by the end symbol, and back."""
    cleaning = tokenizers_steps(ours.normalization)
    if isinstance(ours, text.SentencePieceTokenizer):
        pipeline = from_sentencepiece(ours, cleaning)
    else:
        assert isinstance(ours, text.WordPieceTokenizer)
        pipeline = from_wordpiece(ours, cleaning)
    end = text.SYMBOLS[EOS]
    pipeline.post_processor = processors.TemplateProcessing(
        # As in training, a source ends with the end symbol.
        single=f"$A {end}",
        special_tokens=[(end, EOS)],
    )
    symbols = [AddedToken(symbol, special=True, normalized=False) for symbol in text.SYMBOLS]
    pipeline.add_special_tokens(symbols)
    # Not special, because transformers is to recognize tags in a text, but no symbols.
    tags = [AddedToken(tag, normalized=False, lstrip=True, rstrip=True) for tag in ours.tags]
    pipeline.add_tokens(tags)
    return pipeline


def from_wordpiece(
    ours: text.WordPieceTokenizer,
    cleaning: list[normalizers.Normalizer],
) -> tokenizers.Tokenizer:
    """The library's own file, with our normalization, and with a decoder that joins subwords."""
    tree = parse_json(ours.content)
    # An entry of our own, which the library would refuse.
    tree.pop(text.OF_WORDPIECE, None)
    pipeline = tokenizers.Tokenizer.from_str(json.dumps(tree))
    pipeline.normalizer = normalizers.Sequence(cleaning)
    pipeline.decoder = decoders.Sequence(
        [decoders.Replace(text.CONTINUES, ""), decoders.ByteLevel()],
    )
    return pipeline


def from_sentencepiece(
    ours: text.SentencePieceTokenizer,
    cleaning: list[normalizers.Normalizer],
) -> tokenizers.Tokenizer:
    """The subwords of a sentencepiece model, with our normalization and escapes."""
    model = ours.parsed()
    if model.trainer_spec.model_type == model.trainer_spec.UNIGRAM:
        pipeline = tokenizers.Tokenizer(unigram(model))
        pipeline.pre_tokenizer = pre_tokenizers.Split(SPELT_SYMBOL, "merged_with_previous")
    else:
        pipeline = tokenizers.Tokenizer(bpe(model))
    pipeline.normalizer = normalizers.Sequence(
        [
            *cleaning,
            *(normalizers.Replace(plain, escaped) for plain, escaped in ESCAPES),
            normalizers.Replace(" ", text.META),
            # sentencepiece's dummy prefix: the first word gets a blank like all others.
            normalizers.Prepend(text.META),
        ]
    )
    pipeline.decoder = decoders.Sequence(
        [
            decoders.Replace(text.META, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            # The blank of the dummy prefix.
            decoders.Strip(" ", 1, 0),
            # In reverse order, or an escaped ESCAPE could become part of another escape.
            *(decoders.Replace(escaped, plain) for plain, escaped in reversed(ESCAPES)),
        ]
    )
    return pipeline


def unigram(model: Any) -> models.Unigram:
    """The library's model for a parsed sentencepiece model of type unigram."""
    subwords = [(subword.piece, subword.score) for subword in model.pieces]
    return models.Unigram(subwords, model.trainer_spec.unk_id, byte_fallback=True)


def bpe(model: Any) -> models.BPE:
    """The library's model for a parsed sentencepiece model of type BPE.

    sentencepiece merges any two neighbors whose concatenation is a subword. The library lists
    merges, so this lists every way to cut a subword into two.
    """
    vocabulary = {subword.piece: number for number, subword in enumerate(model.pieces)}
    # Symbols and bytes are not made by merging.
    normal = [subword.piece for subword in model.pieces if subword.type == subword.NORMAL]
    parts = set(normal)
    merges = []
    for piece in normal:
        for cut in range(1, len(piece)):
            left = piece[:cut]
            right = piece[cut:]
            if left in parts and right in parts:
                merges.append((left, right))
    return models.BPE(vocabulary, merges, byte_fallback=True)
