from .command import Command as Command, Option as Option, exists as exists
from .composition import (
    compose as compose,
    compose_tree as compose_tree,
    explain_option as explain_option,
    groups as groups,
    literal as literal,
    nearest as nearest,
    parse as parse,
    set_text as set_text,
    to_yaml as to_yaml,
)
from .corpus import (
    BOS as BOS,
    EOS as EOS,
    IN_TRAINING as IN_TRAINING,
    LANGUAGE as LANGUAGE,
    PAD as PAD,
    TAG as TAG,
    UNK as UNK,
    DataConfig as DataConfig,
    FilterConfig as FilterConfig,
    TokenizerConfig as TokenizerConfig,
)
from .decoding import MAX_TOKENS as MAX_TOKENS, DecodeConfig as DecodeConfig
from .fields import (
    MISSING as MISSING,
    as_list as as_list,
    build as build,
    choice as choice,
    difference as difference,
    flatten as flatten,
    in_words as in_words,
    inline as inline,
    keys_of as keys_of,
    matches as matches,
    number as number,
    plugin_options as plugin_options,
    require as require,
    shown as shown,
    to_tree as to_tree,
)
from .foreign_words import our_words as our_words
from .help import help_text as help_text
from .model import ModelConfig as ModelConfig
from .scoring import (
    BLEU_TOKENIZERS as BLEU_TOKENIZERS,
    metric_names as metric_names,
)
from .sources import SourceConfig as SourceConfig, held_out_name as held_out_name, sources_of as sources_of
from .trainer import TrainerConfig as TrainerConfig, check_precision as check_precision
from .training import (
    BatchingConfig as BatchingConfig,
    CheckpointConfig as CheckpointConfig,
    ExperimentConfig as ExperimentConfig,
    OptimConfig as OptimConfig,
    ValidationConfig as ValidationConfig,
)
from .translation import (
    Compute as Compute,
    JobConfig as JobConfig,
    TranslateConfig as TranslateConfig,
    TranslatorOptions as TranslatorOptions,
    documents as documents,
    with_plugin_defaults as with_plugin_defaults,
)
