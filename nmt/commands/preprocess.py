"""`nmt preprocess`: prepare a parallel corpus for training."""

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files, preparation, text
from nmt.commands import talker
from nmt.config import (
    MISSING,
    Command,
    ExperimentConfig,
    NMTError,
    exists,
    sources_of,
    without_compression,
)
from nmt.extensions import CorpusEntry, PairsEntry, import_attribute
from nmt.registry import entries_of

if TYPE_CHECKING:
    from rich.console import Console

    from nmt.preparation import Inspected

FORMS = (
    "`nmt preprocess corpus/train.en corpus/train.de`, "
    "or `nmt preprocess data=files data.train=A:B`"
)
HELD_OUT = ("valid", "test")
MOST_DIRECTIONS = 4
"""The largest number of directions that the last line lists."""
PRINTED_CHARACTERS = 60
"""The characters of a line that are printed outside of a terminal."""
LOG_SECONDS = 60.0
"""The time between two lines of a log, as when translating."""
LARGEST_SHARE = 0.3
"""The largest share of the vocabulary that single characters may have without a notice."""


def run(config: ExperimentConfig) -> None:
    """Prepare the corpus, and report the pairs kept and any problems."""
    console = talker()
    # Before the work: a mistyped language costs hours otherwise.
    report_languages(config, console)
    log = Log(console)
    with console.status("preparing") as status, printed_notices(console):

        def say(words: str) -> None:
            status.update(words)
            log(words)

        manifest, is_new = preparation.preprocess(config, say)
    if not is_new:
        console.print(
            f"{config.prepared} is already prepared with this configuration: nothing to do"
        )
        return
    for split, counts in manifest.counts.items():
        report_counts(split, counts, config, console)
    report_vocabulary(manifest.vocabulary_size, config, console)
    console.print(
        f"prepared corpus: {config.prepared} ({directions_in_words(config)}, "
        f"{manifest.vocabulary_size:,} subwords)"
    )


def directions_in_words(config: ExperimentConfig) -> str:
    """The directions of a corpus, such as `en to de, en to fr`."""
    corpora = [source.data for source in sources_of(config.data)]
    directions = dict.fromkeys(f"{data.source} to {data.target}" for data in corpora)
    if len(directions) > MOST_DIRECTIONS:
        return f"{len(directions)} directions"
    return ", ".join(directions)


def report_languages(config: ExperimentConfig, console: "Console") -> None:
    """Report language codes that name no language."""
    codes = {"data.source": config.data.source, "data.target": config.data.target}
    for key, code in codes.items():
        hint = text.did_you_mean(code)
        if hint:
            console.print(f"notice: {key}={code}: no such language; {hint}")


def report_counts(
    split: str,
    counts: dict[str, Any],
    config: ExperimentConfig,
    console: "Console",
) -> None:
    """Report how many pairs of a split were kept, and why others were dropped."""
    dropped = dict(counts["dropped"])
    # What was neither kept nor dropped was drawn for the held-out sets.
    held_out = counts["read"] - counts["kept"] - sum(dropped.values())
    if held_out:
        # Only sets that the user did not give are drawn.
        drawn = [f"data.{name}_size" for name in HELD_OUT if not getattr(config.data, name)]
        dropped[f"drawn for held-out sets, {' and '.join(drawn)}"] = held_out
    line = f"{split}: {counts['kept']:,} of {counts['read']:,} pairs kept"
    if dropped:
        reasons = [f"{count:,} {reason}" for reason, count in dropped.items()]
        line += f" (dropped: {', '.join(reasons)})"
    console.print(line)
    shared = counts.get("in_train")
    if shared:
        console.print(
            f"notice: pairs of {split} also in train: {shared:,}, so scores on {split} are too high"
        )


def report_vocabulary(entries: int, config: ExperimentConfig, console: "Console") -> None:
    """Report a vocabulary that is smaller than requested, or that has few entries for words."""
    requested = config.tokenizer.vocabulary_size
    # A small corpus has too few different pieces for a large vocabulary.
    if entries < requested:
        console.print(
            f"notice: the vocabulary has only {entries:,} entries; "
            f"tokenizer.vocabulary_size={requested:,}"
        )
    # Of a vocabulary of 4,000, Chinese characters and bytes took half.
    characters = east_asian_characters(Path(config.prepared))
    if characters > LARGEST_SHARE * entries:
        # Four entries for each character, rounded up to thousands.
        enough = 4 * characters // 1000 * 1000 + 1000
        console.print(
            f"notice: {characters:,} of {entries:,} vocabulary entries are single characters, "
            "which leaves few for words: "
            f"pass tokenizer.vocabulary_size={enough} or more"
        )


class Log:
    """Prints what a long command is doing, a line per minute, unless a terminal shows it."""

    def __init__(self, console: "Console", clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.printed = clock()

    def __call__(self, words: str) -> None:
        if self.console.is_terminal or self.clock() - self.printed < LOG_SECONDS:
            return
        self.printed = self.clock()
        self.console.print(words)


class NoticePrinter(logging.Handler):
    """Prints logged warnings as notices."""

    def __init__(self, console: "Console") -> None:
        super().__init__(logging.WARNING)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        # The text already says `notice:`.
        advice = getattr(record, "advice", "")
        self.console.print("; ".join(filter(None, [record.getMessage(), advice])))
        pairs: Sequence[Inspected] = getattr(record, "worst_pairs", ())
        if pairs:
            print_pairs(pairs, self.console)


def print_pairs(pairs: "Sequence[Inspected]", console: "Console") -> None:
    """Print damaged pairs: a table in a terminal, otherwise a line for each pair."""
    if not console.is_terminal:
        for pair in pairs:
            source, target = (line[:PRINTED_CHARACTERS] for line in pair.pair)
            console.print(
                f"  {pair.place}, {pair.damage}, similarity {pair.similarity:.2f}: {source!r}, "
                f"{target!r}"
            )
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("pair", justify="right", no_wrap=True)
    table.add_column("damage", no_wrap=True)
    table.add_column("similarity", justify="right", no_wrap=True)
    # Only the texts are cut: the two columns share the width that is left.
    table.add_column("source", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("target", no_wrap=True, overflow="ellipsis", ratio=1)
    for pair in pairs:
        # `Text`, because a sentence may look like markup.
        texts = [Text(line) for line in pair.pair]
        place = pair.place.removeprefix("pair ")
        table.add_row(place, pair.damage, f"{pair.similarity:.2f}", *texts)
    console.print(table, soft_wrap=False)


@contextmanager
def printed_notices(console: "Console") -> Iterator[None]:
    """Print nmt's log messages as notices, regardless of the logging that libraries set up."""
    logger = logging.getLogger("nmt")
    printer = NoticePrinter(console)
    propagates = logger.propagate
    logger.addHandler(printer)
    # Otherwise a handler that another library has added to the root logger would print it again.
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(printer)
        logger.propagate = propagates


def east_asian_characters(corpus: Path) -> int:
    """The number of vocabulary entries that are single Chinese, Japanese or Korean characters."""
    from nmt.data import TOKENIZER  # imports torch

    character = re.compile(f"[{text.HAN}{text.KANA}{text.HANGUL}]")
    vocabulary = text.load_tokenizer(corpus / TOKENIZER).vocabulary()
    return sum(character.fullmatch(entry) is not None for entry in vocabulary)


def corpus_files(words: list[str]) -> dict[str, Any]:
    """Return the settings for files of pairs, or for two files, one for each language."""
    for word in words:
        if not exists(word):
            several = "; for several files or a pattern, pass data=files data.train=[A,B]"
            is_several = re.search("[][*?]", word) is not None
            raise NMTError(f"{word}: no such file; {FORMS}{several if is_several else ''}")
    if all(map(text.table_format, words)):
        return files_of_pairs(words)
    return parallel_files(words)


def files_of_pairs(words: list[str]) -> dict[str, Any]:
    """The settings for files that hold both sides; some formats name the languages."""
    first = Path(words[0])
    is_single = len(words) == 1
    entry = entries_of(PairsEntry)[text.table_format(words[0])]
    languages: dict[str, Any] = {}
    if entry.languages:
        # A translation memory, for example, names the languages of its segments.
        languages = import_attribute(entry.languages)(words[0])
    return {
        "data": "files",
        "data.name": first.name.partition(".")[0] if is_single else first.resolve().parent.name,
        "data.train": words,
        # MISSING makes the composition ask for the languages by name.
        **(languages or {"data.source": MISSING, "data.target": MISSING}),
    }


def parallel_files(words: list[str]) -> dict[str, Any]:
    """The settings for two files whose names differ only in the language suffix."""
    names = [without_compression(word) for word in words]
    prefixes = {name.rpartition(".")[0] for name in names}
    are_alike = len(prefixes) == 1 and "" not in prefixes
    # The two sides must differ, so the same file twice is refused, too.
    if len(set(names)) != 2 or len(words) != 2 or not are_alike:
        raise NMTError(
            f"{' '.join(words)}: give two files whose names differ only in the language suffix; "
            f"{FORMS}"
        )
    prefix = Path(prefixes.pop())
    source, target = (name.rpartition(".")[2] for name in names)
    # `corpus.de.txt` has its language in the middle, and `txt` would become a language.
    if "txt" in (source, target):
        raise NMTError(f"{' '.join(words)}: end each file name with its language code; {FORMS}")
    return {
        "data": "files",
        # train.en and train.de are often in a folder named after the corpus.
        "data.name": prefix.name if prefix.parent == Path() else prefix.resolve().parent.name,
        "data.source": source,
        "data.target": target,
        "data.train": str(prefix),
    }


def initial_groups(init: str) -> dict[str, dict[str, Any]]:
    """Return the configuration of the model that training starts from, and of its tokenizer."""
    description = files.read_description(files.find_model_directory(init, "init"))
    # Training makes the entries that `nmt extend` added predictable.
    model = {**description.model, "untrained": 0}
    return {"model": model, "tokenizer": files.tokenizer_settings(description)}


def default_corpus() -> str:
    """The corpus that a plugin offers as the default, or else files."""
    for entry in entries_of(CorpusEntry).values():
        if entry.group:
            return entry.group
    return "files"


GROUPS = {
    "data": default_corpus(),
    "tokenizer": "bpe37k",
    "optim": "paper",
    "batching": "paper",
    "trainer": "paper",
    "decode": "paper",
    "model": "base",
    "optional experiment": None,
}
"""The paper's base model, by default on the paper's corpus (WMT14 English-German)."""
COMMAND = Command(
    name="preprocess",
    config=ExperimentConfig,
    run=run,
    words=corpus_files,
    initial=initial_groups,
    usage="[SOURCE TARGET]",
    examples=(
        "corpus/train.en corpus/train.de experiment=laptop",
        "corpus/train.en corpus/train.de data.test=corpus/test",
    ),
    instead={"name": "data.name"},
    # A corpus does not depend on how a model is trained on it.
    hides="name run logger model optim batching checkpoints validation decode trainer",
    memory="pass fewer workers",
    groups=GROUPS,
)
