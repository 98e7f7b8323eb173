"""Make a small COMET checkpoint with random weights; run it in COMET's environment.

`python small_checkpoint.py FOLDER` writes FOLDER/checkpoints/model.ckpt, and the configuration and
tokenizer of its encoder to FOLDER/encoder, so that COMET loads it without the network.
"""

import logging
import string
import sys
import warnings
from pathlib import Path

import pytorch_lightning
import torch
import yaml
from comet.models import RegressionMetric
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing
from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast

SEED = 7
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
"""XLM-R's special pieces, in the order of their numbers."""
WORDS = "the a dog cat man woman child runs sits sees eats on under grass street tree red old small"
DEVIATION = 0.5
"""Of the encoder's initial weights: with the default, 0.02, all scores are nearly equal."""


def make_tokenizer(folder: Path) -> int:
    """Write XLM-R's tokenizer with a few words and letters, and return its number of pieces."""
    words = [f"▁{word}" for word in WORDS.split()]
    pieces = [*SPECIAL, "▁", *words, *string.ascii_letters, *string.punctuation]
    # Log probabilities; words are likelier than their letters.
    scores = [-2.0 if piece in words else -5.0 for piece in pieces]
    ranked = list(zip(pieces, scores, strict=True))
    tokenizer = Tokenizer(Unigram(ranked, unk_id=SPECIAL.index("<unk>")))
    tokenizer.pre_tokenizer = Metaspace()
    ends = [(piece, SPECIAL.index(piece)) for piece in ("<s>", "</s>")]
    tokenizer.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    fast = XLMRobertaTokenizerFast(tokenizer_object=tokenizer, model_max_length=64)
    fast.save_pretrained(folder)
    return len(fast)


def make_checkpoint(folder: Path) -> None:
    encoder = folder / "encoder"
    encoder.mkdir(parents=True)
    config = XLMRobertaConfig(
        vocab_size=make_tokenizer(encoder),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        initializer_range=DEVIATION,
        pad_token_id=1,
    )
    config.save_pretrained(encoder)
    torch.manual_seed(SEED)
    model = RegressionMetric(
        pretrained_model=str(encoder.absolute()),
        load_pretrained_weights=False,
        local_files_only=True,
        hidden_sizes=[16],
    )
    trainer = pytorch_lightning.Trainer(accelerator="cpu", logger=False)
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt")
    # COMET reads the class of the model from this file, two folders above the checkpoint.
    (folder / "hparams.yaml").write_text(yaml.dump({"class_identifier": "regression_metric"}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    make_checkpoint(Path(sys.argv[1]))
