"""The end of a run: its last checkpoints are averaged into the model directory, and scored on the validation set."""

import gc
import math
from pathlib import Path

from rich.console import Console

from nmt.config import CheckpointConfig, ExperimentConfig
from nmt.data.prepared import PreparedCorpus
from nmt.evaluation.scores import Score
from nmt.search.torch_engine import TorchEngine
from nmt.text.tokenizers import load_tokenizer
from nmt.training.averaging import averaged_model, write_average
from nmt.training.processes import is_first_process
from nmt.training.run_folder import checkpoint_step, kept_checkpoints, read_metrics, remove_older
from nmt.training.trainer import leave_process_group, make_trainer
from nmt.training.validation import validation_score
from nmt.translation.translator import Translator


def finish(config: ExperimentConfig, corpus: PreparedCorpus, run: Path, console: Console) -> None:
    """Average the last checkpoints into the model directory, scored on the validation set."""
    leave_process_group()
    if not is_first_process():
        return
    remove_older(run, config.checkpoints)
    gc.collect()  # what was trained hangs together in circles, and would keep its memory
    average = averaged_model(average_of(run, config.checkpoints, console))
    scored = None
    wanted = config.validation.bleu_sentences
    if wanted != 0:
        average.model.to(make_trainer(config).strategy.root_device)
        translator = Translator(TorchEngine([average.model], config.decode), load_tokenizer(corpus.tokenizer_file))
        score = validation_score(translator, corpus, wanted)
        average.model.cpu()
        whole = len(corpus.split("valid"))
        scored = score, min(wanted or whole, whole)
        console.print(
            f"average of {len(average.updates)} checkpoints: validation {score.name} {score.value:.2f} on "
            f"{scored[1]:,} sentences, `{score.signature}`"
        )
        compare_with_last(run, average.updates, score, console)
    write_average(average, corpus.tokenizer_file, run / "model", scored)
    console.print(f"the model is in {run / 'model'}")
    made, max_steps = average.updates[-1], config.trainer["max_steps"]
    if made < max_steps and config.trainer["max_time"] is not None:
        console.print(
            f"stopped by trainer.max_time at update {made:,} of {max_steps:,}; the same command goes on from there"
        )


def average_of(run: Path, config: CheckpointConfig, console: Console) -> list[Path]:
    """The checkpoints that a run's model is the average of; tells where some of them are no longer there."""
    paths = kept_checkpoints(run, config.every_steps, config.keep)
    wanted = min(config.keep, math.ceil(checkpoint_step(paths[-1]) / config.every_steps))
    if len(paths) < wanted:
        console.print(
            f"notice: the average is of {len(paths)} checkpoints, not of {wanted}: the others were removed, or never "
            "written, under other checkpoints.keep and checkpoints.every_steps"
        )
    return paths


def compare_with_last(run: Path, updates: list[int], score: Score, console: Console) -> None:
    """Tell where the average is worse than its last checkpoint, as when a young model still changes a lot."""
    key = f"valid_{'f1' if score.metric == 'brackets' else 'bleu'}"
    last = [float(row[key]) for row in read_metrics(run) if row["step"] == str(updates[-1]) and row.get(key)]
    if last and len(updates) > 1 and score.value < last[-1] - 1:
        console.print(
            f"notice: the last checkpoint alone had {last[-1]:.2f}; while a model still learns fast, `nmt average "
            f"run={run} last=1`, or fewer updates between checkpoints (checkpoints.every_steps), may be better"
        )
