"""`nmt train`: train a model on a prepared corpus."""

import gc
from pathlib import Path
from typing import Any

from nmt.commands.console import talker
from nmt.commands.preprocess import GROUPS
from nmt.config import Command, ExperimentConfig, require
from nmt.errors import NMTError
from nmt.registry import entries_of


def run(config: ExperimentConfig) -> int | None:
    """Start or continue the run of a configuration."""
    from nmt.data import read_manifest

    console = talker()
    read_manifest(Path(config.prepared))  # before the seconds that Lightning takes to load
    with console.status("loading"):
        gc.disable()  # to look for garbage among what Lightning imports takes a second
        from nmt.training import train

        gc.enable()
    if config.minutes is not None or config.trainer.max_steps is None or config.batching.max_tokens is not None:
        plans = entries_of("plan").values()
        keys = "minutes=, batching.max_tokens=, or trainer.max_time without max_steps"
        require(bool(plans), f"{keys}, needs the plugin nmt/plugins/minutes")
        for plan in plans:
            config = plan.load()(config, console)
    number = train(config, console)
    if number is None:
        return None
    console.print(f"stopped and saved in {config.run}; the same command goes on from there")
    return 128 + number


def prepared_corpus(words: list[str]) -> dict[str, Any]:
    """The folder of a prepared corpus, with data and tokenizer from its manifest."""
    from nmt.data import read_manifest

    folder = Path(words[0])
    if len(words) > 1 or not folder.is_dir():
        reason = f"{words[1]}: one corpus, please" if len(words) > 1 else f"{folder}: no such folder"
        raise NMTError(f"{reason}; `nmt train CORPUS KEY=VALUE...` takes a folder that `nmt preprocess` wrote")
    content = read_manifest(folder).content
    return {"prepared": str(folder), "data": content["data"], "tokenizer": content["tokenizer"]}


def initial_model(init: str) -> dict[str, dict[str, Any]]:
    """The configuration of the model that training starts from, and of its vocabulary."""
    from nmt.files import find_model_directory, read_description, tokenizer_settings

    description = read_description(find_model_directory(init, "init"))
    return {"model": description.model, "tokenizer": tokenizer_settings(description)}


COMMAND = Command(
    "train",
    ExperimentConfig,
    run,
    prepared_corpus,
    initial_model,
    usage="[CORPUS]",
    example="data/mine experiment=laptop",
    keys="experiment=laptop model=small name=mine trainer.max_steps=20000 trainer.max_time=2h trainer.devices=2 "
    "trainer.precision=bf16-mixed optim.factor=2 batching.tokens_per_update=8000 model.dropout=0.3 seed=2",
    hides="data tokenizer",
    memory="other programs may have taken it since training began; the same command goes on from the last checkpoint",
    groups=GROUPS,
)
