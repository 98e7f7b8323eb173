from .command import (
    OPTIONS as OPTIONS,
    Command as Command,
    help_text as help_text,
    user_folders as user_folders,
)
from .command import groups as groups
from .composition import (
    compose as compose,
    is_bare as is_bare,
    literal as literal,
    set_text as set_text,
)
from .composition import parse as parse, to_yaml as to_yaml
from .corpus import (
    LANGUAGE as LANGUAGE,
    TokenizerConfig as TokenizerConfig,
    without_compression as without_compression,
)
from .corpus import (
    FilterConfig as FilterConfig,
    facts_of_kind as facts_of_kind,
    held_out_name as held_out_name,
)
from .corpus import (
    BOS as BOS,
    IN_TRAINING as IN_TRAINING,
    DataConfig as DataConfig,
    SourceConfig as SourceConfig,
)
from .corpus import EOS as EOS, PAD as PAD, UNK as UNK, sources_of as sources_of
from .fields import (
    check_name as check_name,
    enough_memory_or as enough_memory_or,
    is_out_of_memory as is_out_of_memory,
)
from .fields import (
    how_to_install as how_to_install,
    plugin_options as plugin_options,
    running_text as running_text,
)
from .fields import (
    IF_LATIN_1 as IF_LATIN_1,
    NMTError as NMTError,
    SameForAll as SameForAll,
    difference as difference,
)
from .fields import (
    MISSING as MISSING,
    checked as checked,
    choice as choice,
    in_words as in_words,
    one_line as one_line,
)
from .fields import (
    as_list as as_list,
    flatten as flatten,
    keys_of as keys_of,
    matches as matches,
    require as require,
)
from .fields import (
    explain as explain,
    inline as inline,
    nearest as nearest,
    setting as setting,
    to_tree as to_tree,
)
from .fields import (
    answer as answer,
    build as build,
    exists as exists,
    number as number,
    shown as shown,
)
from .fields import Member as Member, members_of as members_of
from .stored import (
    build_stored as build_stored,
    value_before as value_before,
    with_defaults as with_defaults,
)
from .minutes import SETS as SETS
from .training import (
    ENDLESS as ENDLESS,
    CheckpointConfig as CheckpointConfig,
    ExperimentConfig as ExperimentConfig,
)
from .training import (
    BatchingConfig as BatchingConfig,
    TrainerConfig as TrainerConfig,
    parse_duration as parse_duration,
)
from .training import (
    ENDING as ENDING,
    SETTLED as SETTLED,
    ModelConfig as ModelConfig,
    OptimConfig as OptimConfig,
)
from .translation import (
    BLEU_TOKENIZERS as BLEU_TOKENIZERS,
    Compute as Compute,
    TranslatorOptions as TranslatorOptions,
)
from .translation import (
    DecodeConfig as DecodeConfig,
    TranslateConfig as TranslateConfig,
    metric_names as metric_names,
)
from .translation import (
    JobConfig as JobConfig,
    document_format as document_format,
    documents as documents,
)
from .supported import (
    ANY as ANY,
    FLAG as FLAG,
    Program as Program,
    Rule as Rule,
    Settings as Settings,
)
from .supported import exported_settings as exported_settings, only as only, only_by as only_by
from .supported import settings_of as settings_of
