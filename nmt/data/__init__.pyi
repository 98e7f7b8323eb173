from .arrow import (
    IDS_SCHEMA as IDS_SCHEMA,
    TEXT_SCHEMA as TEXT_SCHEMA,
    arrow_blocks as arrow_blocks,
    arrow_writer as arrow_writer,
    list_column as list_column,
    text_block as text_block,
    text_pairs as text_pairs,
)
from .datamodule import (
    STOPPING as STOPPING,
    UpdateDataModule as UpdateDataModule,
    accumulation as accumulation,
    batch_of as batch_of,
)
from .manifest import (
    FORMAT_VERSION as FORMAT_VERSION,
    TOKENIZER as TOKENIZER,
    Manifest as Manifest,
    as_prepared as as_prepared,
    check_ours as check_ours,
    fingerprint as fingerprint,
    read_manifest as read_manifest,
)
from .planning import (
    BatchPlanner as BatchPlanner,
    MicroBatch as MicroBatch,
    UpdateSize as UpdateSize,
    last_stage as last_stage,
    stages as stages,
)
from .prepared import (
    Batch as Batch,
    Domain as Domain,
    PreparedCorpus as PreparedCorpus,
    PreparedSplit as PreparedSplit,
    corpus_of as corpus_of,
    dummy_batch as dummy_batch,
    open_corpus as open_corpus,
)
from .shuffling import INCREMENT as INCREMENT, Ints as Ints, shifted as shifted, splitmix as splitmix
from .transforms import IdPair as IdPair, Transform as Transform, transforms_for as transforms_for
