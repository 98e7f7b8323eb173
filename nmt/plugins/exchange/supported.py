"""The properties of a model that CTranslate2 and transformers can reproduce.

Imports no heavy library.
"""

from typing import Any

from nmt.config import ANY, FLAG, Program, Rule, Settings, only, only_by, structured_targets

USE_TORCH = "use engine=torch"
MARIAN_NUMBERS = {"zero_start": True, "positions": "tensor2tensor", "norm_epsilon": 1e-6}
"""The settings in which models trained by Marian differ from the paper."""


def head_width(settings: Settings) -> tuple[Any, ...]:
    """The width of a head that divides d_model evenly."""
    return (settings["model.d_model"] // settings["model.heads"],)


def computes_as_marian(settings: Settings) -> bool:
    # transformers computes Marian's models slightly differently than Marian itself; see
    # huggingface.py.
    return all(settings[f"model.{key}"] == value for key, value in MARIAN_NUMBERS.items())


def is_multilingual(settings: Settings) -> bool:
    """Whether transformers' classes for M2M-100 and mBART-50 are those of the model."""
    kind = settings["tokenizer.kind"]
    # `nmt extend` also extends vocabularies of nmt's own, in which only sources have tags.
    return bool(kind == "multilingual" or (kind == "extended" and settings["model.target_tags"]))


def has_marian_vocabulary(settings: Settings) -> bool:
    return bool(settings["tokenizer.kind"] == "marian")


def kinds_of_vocabulary(settings: Settings) -> tuple[Any, ...]:
    kinds = ("bpe", "unigram", "wordpiece", "marian", "multilingual")
    return (*kinds, "extended") if is_multilingual(settings) else kinds


DIVIDES_WIDTH = Rule(
    lambda heads, settings: settings["model.d_model"] % heads == 0,
    lambda key, settings: f"a divisor of model.d_model ({settings['model.d_model']}) for {key}",
)
OF_TEXT = Rule(
    lambda kind, settings: structured_targets(kind) is None,
    lambda key, settings: f"targets that are text, not structures, for {key}",
)
"""A rule for data.kind: the targets must be text."""
UNLESS_LIKELY_TO_TRUNCATE = Rule(
    lambda alpha, settings: alpha <= 1 or settings["decode.beam_size"] == 1,
    lambda key, settings: f"at most 1 for {key}",
)
"""A rule for decode.length_penalty: above 1, CTranslate2 stops before it finds the winner."""
TRAINED = Rule(
    # Neither program can leave entries out of the softmax.
    lambda untrained, settings: untrained == 0,
    lambda key, settings: "training with the entries that `nmt extend` added",
)
"""A rule for model.untrained."""
NO_PREFIX = Rule(
    lambda prefix, settings: not prefix.strip(),
    lambda key, settings: f"no {key}",
)


def norm_of_transformers(settings: Settings) -> tuple[Any, ...]:
    if is_multilingual(settings):
        return ("pre",)
    # MarianTokenizer is for MarianMTModel, whose layers are post-norm.
    return ("post",) if has_marian_vocabulary(settings) else ("post", "pre")


def positions_of_transformers(settings: Settings) -> tuple[Any, ...]:
    if is_multilingual(settings):
        return ("tensor2tensor", "learned")
    if settings["model.norm"] == "pre":
        # PegasusForConditionalGeneration stores a table.
        return ("sinusoidal", "learned", "tensor2tensor")
    return ("tensor2tensor",) if computes_as_marian(settings) else ("sinusoidal",)


def first_position_of_transformers(settings: Settings) -> tuple[Any, ...]:
    if is_multilingual(settings):
        return (0,) if settings["model.positions"] == "learned" else (2,)
    # With a table, sequences may begin at any of its positions.
    return (settings["model.first_position"],) if settings["model.norm"] == "pre" else (0,)


def embedding_norm_of_transformers(settings: Settings) -> tuple[Any, ...]:
    """Of multilingual models, mBART normalizes embeddings, and has learned positions."""
    return (is_multilingual(settings) and settings["model.positions"] == "learned",)


def output_bias_of_transformers(settings: Settings) -> tuple[Any, ...]:
    """M2M100ForConditionalGeneration has no output bias."""
    is_m2m = is_multilingual(settings) and settings["model.positions"] != "learned"
    return (False,) if is_m2m else (False, True)


def epsilon_of_transformers(settings: Settings) -> tuple[Any, ...]:
    is_post_norm = settings["model.norm"] == "post"
    return (1e-6,) if is_post_norm and computes_as_marian(settings) else (1e-5,)


def zero_start_of_transformers(settings: Settings) -> tuple[Any, ...]:
    return (False, True) if has_marian_vocabulary(settings) else (False,)


def padding_of_transformers(settings: Settings) -> tuple[Any, ...]:
    """transformers' softmax includes <pad>; its decoder starts from it in Marian's vocabularies."""
    if settings["model.zero_start"]:
        return (True, False)
    return (not has_marian_vocabulary(settings),)


SHAPE = {
    # Every key of a model must be named here: a key that a table lacks is refused.
    "model.name": ANY,
    "model.encoder_layers": ANY,
    "model.decoder_layers": ANY,
    "model.d_model": ANY,
    "model.d_ff": ANY,
    "model.heads": DIVIDES_WIDTH,
    "model.d_k": only_by(head_width),
    "model.d_v": only_by(head_width),
    "model.attention": only("scaled_dot_product"),
    "model.attention_window": only(None),
    # Neither program has the SSRU.
    "model.decoder": only("attention"),
    "model.dropout": ANY,
    "model.checkpointing": ANY,
    "model.attention_bias": FLAG,
    "model.activation": only("relu", "swish", "gelu", "quick_gelu"),
    "model.tied_embeddings": FLAG,
    "model.source_vocabulary_size": ANY,
    "model.output_bias": FLAG,
    "model.untrained": TRAINED,
    "model.max_positions": ANY,
}
"""The rules that CTranslate2 and transformers have in common."""
CTRANSLATE2_MODEL = {
    **SHAPE,
    "model.source_end": FLAG,
    "model.zero_start": FLAG,
    "model.end_start": FLAG,
    "model.target_tags": FLAG,
    "model.first_position": ANY,
    "model.embedding_norm": FLAG,
    "model.padding_probability": FLAG,
    "model.positions": only("sinusoidal", "learned", "tensor2tensor"),
    "model.norm": only("post", "pre"),
    "model.norm_epsilon": ANY,
}
VOCABULARY = {
    "tokenizer.kind": only_by(kinds_of_vocabulary),
    "tokenizer.vocabulary_size": ANY,
    "tokenizer.sample": ANY,
    "tokenizer.normalization": only("canonical", "nfkc", "none"),
    "data.kind": OF_TEXT,
}
CTRANSLATE2 = Program(
    "format=ctranslate2",
    {**CTRANSLATE2_MODEL, **VOCABULARY, "data.tag": ANY},
    "translate with nmt itself",
)
HUGGINGFACE = Program(
    "format=huggingface",
    {
        **SHAPE,
        **VOCABULARY,
        "model.norm": only_by(norm_of_transformers),
        "model.end_start": only_by(lambda settings: (is_multilingual(settings),)),
        "model.target_tags": only_by(lambda settings: (False, is_multilingual(settings))),
        "model.first_position": only_by(first_position_of_transformers),
        "model.embedding_norm": only_by(embedding_norm_of_transformers),
        "model.output_bias": only_by(output_bias_of_transformers),
        "model.source_end": only(True),
        "model.source_vocabulary_size": only_by(
            lambda settings: (None, settings["tokenizer.vocabulary_size"]),
        ),
        "model.positions": only_by(positions_of_transformers),
        "model.norm_epsilon": only_by(epsilon_of_transformers),
        "model.zero_start": only_by(zero_start_of_transformers),
        "model.padding_probability": only_by(padding_of_transformers),
        "data.tag": ANY,
    },
    "use format=ctranslate2",
)
ENGINE = Program(
    "engine=ctranslate2",
    {
        **CTRANSLATE2_MODEL,
        "decode.beam_size": ANY,
        "decode.length_penalty": UNLESS_LIKELY_TO_TRUNCATE,
        "decode.length_penalty_kind": only(None, "gnmt", "marian"),
        "decode.max_extra_length": ANY,
        # CTranslate2 masks tokens before the softmax, so a forced length would change log P.
        "decode.min_length": only(0),
        "decode.max_length": only(None),
        "decode.no_repeat_ngram_size": only(0),
        "decode.do_sample": only(False),
        # Without sampling, these have no effect.
        "decode.temperature": ANY,
        "decode.top_k": ANY,
        "decode.top_p": ANY,
        "decode.seed": ANY,
        "decode.n_best": ANY,
        "decode.batch_tokens": ANY,
        "device": only("auto", "cpu"),
        "precision": only("float32", "int8"),
        "threads": ANY,
        "scores": FLAG,
        # A translation may be worse with a prefix that the model would not have produced.
        "target_prefix": NO_PREFIX,
    },
    USE_TORCH,
)
