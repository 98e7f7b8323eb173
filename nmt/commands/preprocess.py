"""`nmt preprocess`: prepare a parallel corpus for training."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files, preparation, registry, text
from nmt.commands import talker
from nmt.config import MISSING, Command, ExperimentConfig, exists, require, without_compression

if TYPE_CHECKING:
    from rich.console import Console

LARGEST_SHARE = 0.3
"""The largest share of the vocabulary that single characters may have without a notice."""


def run(config: ExperimentConfig) -> None:
    console = talker()
    data = config.data
    name = config.prepared
    for key, code in (("data.source", data.source), ("data.target", data.target)):
        hint = text.did_you_mean(code)
        if hint:
            console.print(f"notice: {key}={code}: no such language; {hint}")
    with console.status("preparing") as status, printed_notices(console):
        manifest, done = preparation.preprocess(config, lambda words: status.update(words))
    if not done:
        console.print(f"{name} is already prepared with this configuration: nothing to do")
        return
    for split, counts in manifest.counts.items():
        lost = dict(counts["dropped"])
        if held_out := counts["read"] - counts["kept"] - sum(lost.values()):
            drawn = " and ".join(
                f"data.{split}_size" for split in ("valid", "test") if not getattr(data, split)
            )
            lost[f"drawn for held-out sets, {drawn}"] = held_out
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in lost.items())
        kept = f"{split}: {counts['kept']:,} of {counts['read']:,} pairs kept"
        console.print(f"{kept} (dropped: {dropped})" if dropped else kept)
        if shared := counts.get("in_train"):
            console.print(
                f"notice: pairs of {split} also in train: {shared:,}, so scores on {split} are too high"
            )
    entries, limit = manifest.vocabulary_size, config.tokenizer.vocabulary_size
    if entries < limit:
        console.print(
            f"notice: the vocabulary has only {entries:,} entries; tokenizer.vocabulary_size={limit:,}"
        )
    characters = east_asian_characters(Path(name))
    if characters > LARGEST_SHARE * entries:
        console.print(
            f"notice: {characters:,} of {entries:,} vocabulary entries are single characters, which leaves few for "
            f"words: pass tokenizer.vocabulary_size={4 * characters // 1000 * 1000 + 1000} or more"
        )
    console.print(f"prepared corpus: {name} ({data.source} to {data.target}, {entries:,} subwords)")


class NoticePrinter(logging.Handler):
    def __init__(self, console: "Console") -> None:
        super().__init__(logging.WARNING)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(record.getMessage())


@contextmanager
def printed_notices(console: "Console") -> Iterator[None]:
    """Print what nmt logs as other notices are printed, whatever logging libraries set up."""
    logger = logging.getLogger("nmt")
    printer = NoticePrinter(console)
    propagates = logger.propagate
    logger.addHandler(printer)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(printer)
        logger.propagate = propagates


def east_asian_characters(corpus: Path) -> int:
    """The number of vocabulary entries that are single characters of Chinese, Japanese or Korean."""
    from nmt.data import TOKENIZER  # imports torch

    character = re.compile(f"[{text.HAN}{text.KANA}{text.HANGUL}]")
    vocabulary = text.load_tokenizer(corpus / TOKENIZER).vocabulary()
    return sum(character.fullmatch(entry) is not None for entry in vocabulary)


def corpus_files(words: list[str]) -> dict[str, Any]:
    """Return the settings for two files whose names differ only in the language suffix, or for files of pairs."""
    forms = "`nmt preprocess corpus/train.en corpus/train.de`, or `nmt preprocess data=files data.train=A:B`"
    for word in words:
        require(exists(word), f"{word}: no such file; {forms}")
    if all(map(text.table_format, words)):
        name = (
            Path(words[0]).name.partition(".")[0]
            if len(words) == 1
            else Path(words[0]).resolve().parent.name
        )
        path = registry.entries_of("pairs")[text.table_format(words[0])].facts.get("languages")
        languages = registry.import_attribute(path)(words[0]) if path else None
        languages = languages or dict.fromkeys(("data.source", "data.target"), MISSING)
        return {"data": "files", "data.name": name, "data.train": words, **languages}
    plain = [without_compression(word) for word in words]
    prefixes = {name.rpartition(".")[0] for name in plain}
    is_pair = len(words) == 2 and len(prefixes) == 1 and "" not in prefixes and plain[0] != plain[1]
    require(
        is_pair,
        f"{' '.join(words)}: give two files whose names differ only in the language suffix; {forms}",
    )
    prefix = Path(prefixes.pop())
    source, target = (name.rpartition(".")[2] for name in plain)
    require(
        "txt" not in (source, target),
        f"{' '.join(words)}: end each file name with its language code; {forms}",
    )
    name = prefix.resolve().parent.name if prefix.parent != Path() else prefix.name
    languages = {"data.source": source, "data.target": target}
    return {"data": "files", "data.name": name, **languages, "data.train": str(prefix)}


def initial_groups(init: str) -> dict[str, dict[str, Any]]:
    """Return the configuration of the model that training starts from, and of its tokenizer."""
    description = files.read_description(files.find_model_directory(init, "init"))
    return {"model": description.model, "tokenizer": files.tokenizer_settings(description)}


GROUPS = {
    "data": next(
        (
            e.facts["default"]
            for e in registry.entries_of("corpus").values()
            if "default" in e.facts
        ),
        "files",
    ),
    "tokenizer": "bpe37k",
    **dict.fromkeys(("optim", "batching", "trainer", "decode"), "paper"),
    "model": "base",
    "optional experiment": None,
}
"""The paper's base model, on the corpus that a plugin offers as the default (WMT14 English-German) or else on files."""
COMMAND = Command(
    *("preprocess", ExperimentConfig, run, corpus_files, initial_groups),
    usage="[SOURCE TARGET]",
    examples=(
        "corpus/train.en corpus/train.de experiment=laptop",
        "corpus/train.en corpus/train.de data.test=corpus/test",
    ),
    instead={"name": "data.name"},
    hides="name run logger model optim batching checkpoints validation decode trainer",
    memory="pass fewer workers",
    groups=GROUPS,
)
