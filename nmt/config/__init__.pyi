from .command import OPTIONS as OPTIONS, Command as Command, groups as groups
from .command import help_text as help_text, user_folders as user_folders
from .composition import compose as compose, is_bare as is_bare, literal as literal
from .composition import parse as parse, set_text as set_text, to_yaml as to_yaml
from .corpus import BOS as BOS, EOS as EOS, IN_TRAINING as IN_TRAINING, LANGUAGE as LANGUAGE, PAD as PAD, UNK as UNK
from .corpus import DataConfig as DataConfig, FilterConfig as FilterConfig, SourceConfig as SourceConfig
from .corpus import TokenizerConfig as TokenizerConfig, held_out_name as held_out_name, sources_of as sources_of
from .corpus import without_compression as without_compression
from .fields import NMTError as NMTError, checked as checked, SameForAll as SameForAll
from .fields import enough_memory_or as enough_memory_or
from .fields import how_to_install as how_to_install, is_out_of_memory as is_out_of_memory, one_line as one_line
from .fields import MISSING as MISSING, as_list as as_list, build as build, choice as choice, difference as difference
from .fields import flatten as flatten, in_words as in_words, inline as inline, keys_of as keys_of
from .fields import matches as matches
from .fields import number as number, plugin_options as plugin_options, require as require, running_text as running_text
from .fields import shown as shown, to_tree as to_tree, undecided as undecided
from .mistakes import answer as answer, exists as exists, explain as explain, nearest as nearest
from .model import ModelConfig as ModelConfig
from .training import ENDING as ENDING, duration as duration
from .training import BatchingConfig as BatchingConfig, CheckpointConfig as CheckpointConfig
from .training import ExperimentConfig as ExperimentConfig, OptimConfig as OptimConfig, TrainerConfig as TrainerConfig
from .translation import BLEU_TOKENIZERS as BLEU_TOKENIZERS, Compute as Compute, DecodeConfig as DecodeConfig
from .translation import JobConfig as JobConfig, TranslateConfig as TranslateConfig
from .translation import TranslatorOptions as TranslatorOptions, documents as documents, metric_names as metric_names
