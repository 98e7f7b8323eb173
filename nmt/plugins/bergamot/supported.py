"""The properties of a model that Firefox's engine can reproduce, as in `experiment=bergamot`.

Imports no heavy library.
"""

from nmt.config import ANY, FLAG, Program, Rule, only, only_by
from nmt.plugins.exchange.supported import DIVIDES_WIDTH, OF_TEXT, has_marian_vocabulary, head_width

BLOCK = 16
"""The engine multiplies matrices whose sizes are multiples of this."""
WHOLE_BLOCKS = Rule(
    lambda size, settings: size % BLOCK == 0,
    lambda key, settings: f"a multiple of {BLOCK} for {key}",
)
SHARED_VOCABULARY = Rule(
    lambda size, settings: size is None or has_marian_vocabulary(settings),
    lambda key, settings: f"{key}=null",
)
"""A rule for model.source_vocabulary_size: the engine has one embedding matrix per vocabulary."""
SUBWORDS = only("unigram", "bpe", "marian")
BERGAMOT = Program(
    "format=bergamot",
    {
        "model.name": ANY,
        "model.encoder_layers": ANY,
        "model.decoder_layers": ANY,
        "model.d_model": WHOLE_BLOCKS,
        "model.d_ff": WHOLE_BLOCKS,
        "model.heads": DIVIDES_WIDTH,
        "model.d_k": only_by(head_width),
        "model.d_v": only_by(head_width),
        "model.attention": only("scaled_dot_product"),
        "model.attention_window": only(None),
        # The values are those of Mozilla's students, whose layers are the only ones that the engine
        # computes.
        "model.decoder": only("ssru"),
        "model.dropout": ANY,
        "model.checkpointing": ANY,
        "model.attention_bias": FLAG,
        "model.activation": only("relu"),
        "model.tied_embeddings": only(True),
        "model.source_vocabulary_size": SHARED_VOCABULARY,
        "model.source_end": only(True),
        "model.zero_start": only(True),
        "model.end_start": only(False),
        "model.target_tags": only(False),
        "model.first_position": only(0),
        "model.embedding_norm": only(False),
        "model.padding_probability": FLAG,
        "model.output_bias": FLAG,
        "model.untrained": only(0),
        # As Marian computes, with which Mozilla's students were trained.
        "model.positions": only("tensor2tensor"),
        "model.max_positions": ANY,
        "model.norm": only("post"),
        "model.norm_epsilon": only(1e-6),
        # The engine reads vocabularies with sentencepiece.
        "tokenizer.kind": SUBWORDS,
        "tokenizer.vocabulary_size": ANY,
        "tokenizer.sample": ANY,
        "tokenizer.normalization": only("canonical", "nfkc", "none"),
        "data.kind": OF_TEXT,
        # The engine gets raw text, in which sentencepiece would split a tag.
        "data.tag": only(None),
    },
    "train with experiment=bergamot",
)
