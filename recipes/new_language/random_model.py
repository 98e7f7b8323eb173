"""Write a small NLLB model with random weights, as transformers stores one.

It knows English, German and Italian. Its vocabulary is learned from text files:

    python random_model.py OUTPUT FILE...
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import sentencepiece
import torch
import transformers
from sentencepiece import sentencepiece_model_pb2
from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

LANGUAGES = ["deu_Latn", "eng_Latn", "ita_Latn"]
PIECES = 8_000
"""Size of the vocabulary, without tags."""
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>"]
"""The first entries of NLLB's vocabulary."""


def learn_pieces(files: list[str], model: Path) -> None:
    """Learn a sentencepiece model with NLLB's settings."""
    sentencepiece.SentencePieceTrainer.train(
        input=files,
        model_prefix=str(model.with_suffix("")),
        model_type="bpe",
        vocab_size=PIECES,
        character_coverage=0.99998,
        normalization_rule_name="nmt_nfkc",
        input_sentence_size=200_000,
        minloglevel=2,
    )


def tokenizer_of(model: Path) -> transformers.NllbTokenizer:
    """NLLB's tokenizer with the pieces of a sentencepiece model."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    # The first three pieces are sentencepiece's own symbols.
    entries = SYMBOLS + [pieces.id_to_piece(piece) for piece in range(3, PIECES)]
    _, _, merges = SentencePieceExtractor(str(model)).extract(transformers.NllbTokenizer.model)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.read_bytes())
    return transformers.NllbTokenizer(
        vocab={entry: number for number, entry in enumerate(entries)},
        merges=merges,
        extra_special_tokens=LANGUAGES,
        src_lang="eng_Latn",
        tgt_lang="deu_Latn",
        _spm_precompiled_charsmap=proto.normalizer_spec.precompiled_charsmap,
    )


def main(output: str, *files: str) -> None:
    with TemporaryDirectory() as folder:
        model = Path(folder) / "pieces.model"
        learn_pieces([*files], model)
        tokenizer = tokenizer_of(model)
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer),
        d_model=192,
        encoder_layers=3,
        decoder_layers=3,
        encoder_ffn_dim=768,
        decoder_ffn_dim=768,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        decoder_start_token_id=2,
        dropout=0.1,
        scale_embedding=True,
        init_std=192**-0.5,
    )
    torch.manual_seed(1)
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(output)
    tokenizer.save_pretrained(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
