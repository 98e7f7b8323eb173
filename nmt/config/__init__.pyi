from .corpus import (
    BOS as BOS,
    EOS as EOS,
    LANGUAGE as LANGUAGE,
    PAD as PAD,
    TAG as TAG,
    UNK as UNK,
    DataConfig as DataConfig,
    FilterConfig as FilterConfig,
    TokenizerConfig as TokenizerConfig,
)
from .decoding import MAX_TOKENS as MAX_TOKENS, DecodeConfig as DecodeConfig
from .model import ModelConfig as ModelConfig
from .renamed import (
    RENAMED as RENAMED,
    with_defaults as with_defaults,
    with_new_names as with_new_names,
    without_defaults as without_defaults,
)
from .rules import (
    MISSING as MISSING,
    as_list as as_list,
    check_name as check_name,
    check_number as check_number,
    check_numbers as check_numbers,
    field_help as field_help,
    number as number,
    number_words as number_words,
    require as require,
    require_choice as require_choice,
    shown as shown,
    type_of as type_of,
)
from .scoring import (
    BLEU_TOKENIZERS as BLEU_TOKENIZERS,
    check_scoring as check_scoring,
    metric_names as metric_names,
)
from .sources import SourceConfig as SourceConfig, held_out_name as held_out_name, sources_of as sources_of
from .trainer import (
    SHORT_PRECISIONS as SHORT_PRECISIONS,
    TrainerConfig as TrainerConfig,
    check_flag as check_flag,
    check_precision as check_precision,
    whole_precision as whole_precision,
)
from .training import (
    BatchingConfig as BatchingConfig,
    CheckpointConfig as CheckpointConfig,
    ExperimentConfig as ExperimentConfig,
    OptimConfig as OptimConfig,
    ValidationConfig as ValidationConfig,
)
from .translation import (
    DOCUMENTS as DOCUMENTS,
    RayConfig as RayConfig,
    SearchConfig as SearchConfig,
    TranslateConfig as TranslateConfig,
    check_engine as check_engine,
    check_hard_terms as check_hard_terms,
    protected_kinds as protected_kinds,
)
