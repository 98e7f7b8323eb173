from .command import OPTIONS as OPTIONS, Command as Command, groups as groups, help_text as help_text
from .command import user_folders as user_folders
from .composition import compose as compose, is_bare as is_bare, literal as literal, parse as parse
from .composition import set_text as set_text, to_yaml as to_yaml
from .corpus import BOS as BOS, EOS as EOS, IN_TRAINING as IN_TRAINING, LANGUAGE as LANGUAGE, PAD as PAD, UNK as UNK
from .corpus import DataConfig as DataConfig, FilterConfig as FilterConfig, SourceConfig as SourceConfig
from .corpus import (
    TokenizerConfig as TokenizerConfig,
    facts_of_kind as facts_of_kind,
    held_out_name as held_out_name,
    sources_of as sources_of,
)
from .corpus import without_compression as without_compression
from .fields import NMTError as NMTError, check_name as check_name, checked as checked, SameForAll as SameForAll
from .fields import IF_LATIN_1 as IF_LATIN_1
from .fields import enough_memory_or as enough_memory_or, how_to_install as how_to_install
from .fields import is_out_of_memory as is_out_of_memory, one_line as one_line, MISSING as MISSING, as_list as as_list
from .fields import build as build, choice as choice, difference as difference, flatten as flatten, in_words as in_words
from .fields import inline as inline, keys_of as keys_of, matches as matches, number as number
from .fields import plugin_options as plugin_options, require as require, running_text as running_text, shown as shown
from .fields import to_tree as to_tree, setting as setting
from .fields import answer as answer, exists as exists, explain as explain, nearest as nearest
from .training import ModelConfig as ModelConfig
from .training import ENDING as ENDING, ENDLESS as ENDLESS, BatchingConfig as BatchingConfig
from .training import CheckpointConfig as CheckpointConfig, ExperimentConfig as ExperimentConfig
from .training import OptimConfig as OptimConfig, TrainerConfig as TrainerConfig, parse_duration as parse_duration
from .translation import BLEU_TOKENIZERS as BLEU_TOKENIZERS, Compute as Compute, DecodeConfig as DecodeConfig
from .translation import JobConfig as JobConfig, TranslateConfig as TranslateConfig
from .translation import TranslatorOptions as TranslatorOptions, documents as documents, metric_names as metric_names
