"""`nmt learn`: learn from corrected translations."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.commands import LATEST_RUN
from nmt.config import (
    Command,
    NMTError,
    TranslatorOptions,
    as_list,
    choice,
    inline,
    number,
    require,
)
from nmt.files import is_prefixed


@dataclass
class LearnConfig:
    """Options of `nmt learn`."""

    run: str = LATEST_RUN
    """Run or model directory to improve; may be given without run=."""
    corrections: Any = field(default_factory=list)
    """Files of corrections: .tsv (source and correction, or what `nmt serve suggestions=FILE`
    collects), .tmx, .po, .xlf, .xliff, .csv, .jsonl or .parquet; may be given without
    corrections=."""
    undo: bool = False
    """Bring back the model before the one in use; repeat it to go further back."""
    list: bool = False
    """List what the run has learned."""
    prune: bool = False
    """Remove all kept models except the one in use; they cannot be brought back."""
    replay: str | None = None
    """Prepared corpus of general text to train on besides the corrections; null: the model's
    training corpus."""
    share: float = number(0.25, 0.05, 0.95)
    """Share of corrections in the sentences of each update; the rest is general text."""
    passes: float = number(12.0, 0.1, 10_000.0)
    """Number of times that training sees each correction, within 60 to 1,500 updates."""
    learning_rate: float | None = number(None, 1e-12, 1.0)
    """Maximum learning rate; null: half of that of experiment=adapt."""
    least: int = number(20, 20, 10**6)
    """Minimum number of usable corrections; near-copies count as one; with fewer, nothing
    changes."""
    general_lines: int = number(1000, 50, 10**6)
    """Number of lines of the general test set to translate."""
    metric: str = choice("chrf", "chrf", "bleu")
    """Metric of the tests."""
    alpha: float = number(0.05, 1e-6, 0.5)
    """A gain on corrections is significant if both tests have a p-value below this; a loss on
    general text, if they are below this or below 0.05."""
    margin: float = number(0.05, 0.0, 1.0)
    """Maximum increase of the loss on general text, as a share of the loss before."""
    seed: int = number(1, 0, 2**32 - 1)
    """Random seed of training and tests."""
    translator: TranslatorOptions = inline(
        TranslatorOptions(), "engine", "precision", "threads", "device", "decode"
    )

    def __post_init__(self) -> None:
        self.corrections = as_list(self.corrections)
        actions = [name for name in ("undo", "list", "prune") if getattr(self, name)]
        if len(actions) > 1 or (actions and self.corrections):
            raise NMTError(f"{actions[0]}=true: pass nothing else but the run")
        require(
            bool(actions or self.corrections),
            "corrections: name a file of corrections, such as `nmt learn runs/mine fixed.tsv`",
        )
        if is_prefixed(self.run):
            raise NMTError(
                f"run={self.run}: a published model cannot change; copy its folder first"
            )


def run(config: LearnConfig) -> int:
    from nmt.plugins.learn.attempts import learn
    from nmt.plugins.learn.history import bring_back, print_history, prune

    if config.undo:
        return bring_back(config)
    if config.list:
        return print_history(config)
    if config.prune:
        return prune(config)
    return learn(config)


def is_run(word: str) -> bool:
    """Whether a word names a run, which need not exist, and not a file of corrections."""
    path = Path(word)
    return is_prefixed(word) or path.is_dir() or not (path.suffix or path.is_file())


def run_and_corrections(words: list[str]) -> dict[str, Any]:
    """A run, and files of corrections."""
    folders = [word for word in words if is_run(word)]
    names = [word for word in words if word not in folders]
    if len(folders) > 1:
        raise NMTError(f"{folders[1]}: `nmt learn RUN FILE...` takes one run")
    settings: dict[str, Any] = {}
    if names:
        settings["corrections"] = names
    if folders:
        settings["run"] = folders[0]
    return settings


COMMAND = Command(
    "learn",
    LearnConfig,
    run,
    run_and_corrections,
    usage="[RUN] FILE...",
    examples=("runs/corpus-30min suggestions.tsv", "runs/corpus-30min undo=true"),
    options={"--undo": "undo=true", "--list": "list=true"},
    memory="close other programs; the same command resumes",
    groups={"decode": "paper"},
)
