from .checkpoints import (
    RunState as RunState,
    delivered_model as delivered_model,
    load_checkpoint as load_checkpoint,
)
from .checkpoints import (
    Average as Average,
    check_origin as check_origin,
    write_average as write_average,
)
from .checkpoints import changed_settings as changed_settings, describe as describe
from .environments import environment_of as environment_of
from .initial import initial_directory as initial_directory
from .identity import corpus_hashes as corpus_hashes, decisive_settings as decisive_settings
from .metrics import (
    MetricsCallback as MetricsCallback,
    peak_flops_per_second as peak_flops_per_second,
)
from .metrics import precision_dtype as precision_dtype, synchronize as synchronize
from .module import (
    TranslationModule as TranslationModule,
    UpdateCallback as UpdateCallback,
    noam as noam,
)
from .module import make_trainer as make_trainer, settle_trainer as settle_trainer
from .loss import (
    Losses as Losses,
    summed_losses as summed_losses,
    training_losses as training_losses,
)
from .run_folder import (
    check_configuration as check_configuration,
    is_first_process as is_first_process,
)
from .run_folder import (
    checkpoint_step as checkpoint_step,
    list_checkpoints as list_checkpoints,
    run_state as run_state,
)
from .run_folder import (
    check_no_links as check_no_links,
    is_finished as is_finished,
    point_latest_to as point_latest_to,
)
from .run_folder import read_config as read_config, read_metrics as read_metrics
from . import time_limit as time_limit
from .replan import (
    TOKENS_PER_PARAMETER as TOKENS_PER_PARAMETER,
    Replan as Replan,
    with_max_steps as with_max_steps,
)
from .trial import Pace as Pace, measured_pace as measured_pace
from .watch import follow_first_process as follow_first_process
from .train import Training as Training, check_corpus as check_corpus, train as train
