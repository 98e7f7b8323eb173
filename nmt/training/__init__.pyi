from .checkpoints import Average as Average, RunState as RunState, check_origin as check_origin
from .checkpoints import delivered_model as delivered_model, load_checkpoint as load_checkpoint
from .checkpoints import write_average as write_average
from .metrics import MetricsCallback as MetricsCallback, peak_flops_per_second as peak_flops_per_second
from .metrics import synchronize as synchronize
from .module import TranslationModule as TranslationModule, noam as noam
from .run_folder import check_configuration as check_configuration, check_no_links as check_no_links
from .run_folder import checkpoint_step as checkpoint_step, is_finished as is_finished
from .run_folder import is_first_process as is_first_process, list_checkpoints as list_checkpoints
from .run_folder import point_latest_to as point_latest_to, read_config as read_config, read_metrics as read_metrics
from .run_folder import run_state as run_state
from .train import Training as Training, check_corpus as check_corpus, train as train
from .module import UpdateCallback as UpdateCallback, make_trainer as make_trainer
