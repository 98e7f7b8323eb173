"""Our tokenizers as a pipeline of the tokenizers library, which transformers loads from tokenizer.json.

MarianTokenizer cannot spell unknown characters as bytes. So this is a pipeline for PreTrainedTokenizerFast, which takes
raw lines and appends the end symbol. It gives the same ids, and decodes them to the same text, except for

- characters newer than the library's table of NFKC, 72 between Python 3.11 and tokenizers 0.23;
- BPE: if two overlapping pairs make the same subword, sentencepiece merges the left one, the library the one that
  comes first in its list;
- unigram: segmentations whose scores differ only by rounding, and lines that contain a symbol or a byte as
  sentencepiece writes them, such as <s> or <0x41>: a subword that reaches over the < is not found there;
- bytes that are not UTF-8: sentencepiece replaces each wrong byte, the library a run of them as one.
"""

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from nmt.config import EOS
from nmt.text import CONTINUES, ESCAPE, META, SYMBOLS, SentencePieceTokenizer, Tokenizer, WordPieceTokenizer

# White space of str.split that NFKC keeps.
BLANKS = Regex("[\t-\r\x1c- \x85\u1680\u2028\u2029]+")
# Unigram would also find the entries for symbols and bytes in a text, so the text is cut inside them.
SPELT_SYMBOL = Regex("<(?=0x[0-9A-F]{2}>|/?s>|pad>|unk>)")


def fast_tokenizer(ours: Tokenizer) -> tokenizers.Tokenizer:
    """A pipeline from raw lines to our ids, with the end symbol, and back."""
    cleaning = [normalizers.NFKC(), normalizers.Replace(BLANKS, " "), normalizers.Strip()]
    if isinstance(ours, SentencePieceTokenizer):
        pipeline = from_sentencepiece(ours, cleaning)
    else:
        assert isinstance(ours, WordPieceTokenizer)
        pipeline = tokenizers.Tokenizer.from_str(ours.content.decode())
        pipeline.normalizer = normalizers.Sequence(cleaning)
        pipeline.decoder = decoders.Sequence([decoders.Replace(CONTINUES, ""), decoders.ByteLevel()])
    end = SYMBOLS[EOS]
    pipeline.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, EOS)])
    pipeline.add_special_tokens([AddedToken(symbol, special=True, normalized=False) for symbol in SYMBOLS])
    return pipeline


def from_sentencepiece(ours: SentencePieceTokenizer, cleaning: list[normalizers.Normalizer]) -> tokenizers.Tokenizer:
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(ours.content)  # type: ignore[attr-defined]
    subwords = [(subword.piece, subword.score) for subword in model.pieces]
    if model.trainer_spec.model_type == model.trainer_spec.UNIGRAM:
        pipeline = tokenizers.Tokenizer(models.Unigram(subwords, model.trainer_spec.unk_id, byte_fallback=True))
        pipeline.pre_tokenizer = pre_tokenizers.Split(SPELT_SYMBOL, "merged_with_previous")
    else:
        normal = {subword.piece for subword in model.pieces if subword.type == subword.NORMAL}
        vocabulary = {subword: number for number, (subword, _) in enumerate(subwords)}
        cuts = ((s[:cut], s[cut:]) for s, _ in subwords if s in normal for cut in range(1, len(s)))
        merges = [pair for pair in cuts if normal.issuperset(pair)]
        pipeline = tokenizers.Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True))
    escapes = [(ESCAPE, ESCAPE + "0"), (META, ESCAPE + "1")]
    pipeline.normalizer = normalizers.Sequence(
        [
            *cleaning,
            *(normalizers.Replace(plain, escaped) for plain, escaped in escapes),
            normalizers.Replace(" ", META),
            normalizers.Prepend(META),
        ]
    )
    pipeline.decoder = decoders.Sequence(
        [
            decoders.Replace(META, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
            *(decoders.Replace(escaped, plain) for plain, escaped in reversed(escapes)),
        ]
    )
    return pipeline
