from .datamodule import (
    STOPPING as STOPPING,
    IdPair as IdPair,
    PlannedBatches as PlannedBatches,
    Transform as Transform,
)
from .datamodule import UpdateDataModule as UpdateDataModule, accumulation as accumulation
from .datamodule import transforms_for as transforms_for
from .planning import INCREMENT as INCREMENT, Ints as Ints, shifted as shifted, splitmix as splitmix
from .planning import (
    BatchPlanner as BatchPlanner,
    MicroBatch as MicroBatch,
    UpdateSize as UpdateSize,
)
from .planning import source_copies as source_copies
from .manifest import (
    FORMAT_VERSION as FORMAT_VERSION,
    Manifest as Manifest,
    check_ours as check_ours,
)
from .manifest import (
    decisive as decisive,
    fingerprint as fingerprint,
    read_manifest as read_manifest,
)
from .prepared import IDS_SCHEMA as IDS_SCHEMA, TOKENIZER as TOKENIZER, Batch as Batch
from .prepared import dummy_batch as dummy_batch
from .prepared import Domain as Domain, PreparedCorpus as PreparedCorpus
from .prepared import PreparedSplit as PreparedSplit, open_corpus as open_corpus
from .prepared import corpus_of as corpus_of
