"""Commands by name, and the code they share. `register` adds everything in the core."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.errors import NMTError, SettingError
from nmt.extensions import (
    Add,
    CommandEntry,
    CorpusEntry,
    EngineEntry,
    MetricEntry,
    OptimizerEntry,
    PairsEntry,
    PythonEntry,
)
from nmt.registry import entries_of

if TYPE_CHECKING:
    from rich.console import Console

    from nmt.config import Command


class Commands(Mapping[str, "Command"]):
    """All commands by name; a command is imported when it is used."""

    def __getitem__(self, name: str) -> "Command":
        return entries_of(CommandEntry)[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(entries_of(CommandEntry))

    def __len__(self) -> int:
        return len(entries_of(CommandEntry))


COMMANDS = Commands()
SUMMARIES = {
    "preprocess": "Prepare a parallel corpus for training.",
    "train": "Train a model or resume a run.",
    "translate": "Translate text, line by line, a document, or a folder of files.",
    "gather": "Join the parts that several `nmt translate part=I/N` have written.",
    "score": "Score translations with metrics or with a model's probabilities.",
    "average": "Average checkpoints into a model.",
    "config": "Show what a run used, and what differs from the defaults or another run.",
}
"""The commands of the core."""
LATEST_RUN = "runs/latest"
LIKE_A_PATH = re.compile(r"[/\\]|\.[A-Za-z0-9]{1,10}$")
"""A word with a slash or a suffix."""
# Classes of Unicode, which Python's `re` lacks: letters, marks and numbers, then Sentence_Terminal
# (UAX 44) in any script, the ellipsis, and the question marks of Greek and Armenian, followed by
# closing brackets or quotation marks.
SENTENCE = (
    r"[\p{L}\p{M}\p{N}].*[\p{Sentence_Terminal}\u2026\u037e\u055e]"
    r"[\p{Pe}\p{Pf}\p{Sentence_Terminal}\"']*$"
    r"|^[\u00bf\u00a1]"
)
"""The end of a sentence, in any script, or the beginning of a Spanish question or exclamation."""


def compose(command: str, overrides: list[str], config_dir: Path | None = None) -> Any:
    """Return the checked options of a command, as its dataclass."""
    # Late, because composing needs Hydra, which completion and help do not.
    from nmt.config import compose

    return compose(COMMANDS[command], overrides, config_dir)


def is_text(word: str) -> bool:
    """Whether a word that names no file must be text.

    It has sentence punctuation or a script without spaces.
    """
    import regex  # takes 20 ms, which most commands need not spend

    from nmt.text import WITHOUT_BLANKS

    is_sentence = regex.search(SENTENCE, word) is not None
    if LIKE_A_PATH.search(word):
        # A sentence may contain a slash, but the name of a file does not end like one in Chinese.
        return is_sentence and not word[-1].isascii()
    return is_sentence or WITHOUT_BLANKS.search(word) is not None


def names_document(word: str) -> bool:
    """Whether a word with blanks must name a file, such as `my report.docx`."""
    from nmt.config import document_format

    # No document format, because plain text is translated line by line, but certainly a file.
    return document_format(word) is not None or word.lower().endswith(".txt")


class Words(NamedTuple):
    """The arguments of a command that are not KEY=VALUE, sorted by what they are."""

    files: list[str]
    folders: list[str]
    texts: list[str]


def paths_and_texts(
    words: list[str],
    forms: str,
    command: str = "",
    forms_with_output: Callable[[str], str] | None = None,
) -> Words:
    """Sort words into files, folders and texts.

    For any other word, raise an NMTError that ends in `forms`, the usage of the command. If the
    command takes a text, `command` is its name, and a single word may be a text, too. If it takes
    an output, a word after a file may be meant as the output: `forms_with_output` is the usage with
    that word.
    """
    from nmt.files import is_prefixed

    sorted_words = Words([], [], [])
    for index, word in enumerate(words):
        if is_prefixed(word) and not has_several_words(word):
            sorted_words.folders.append(word)
        # What exists is a path, even if it reads like a sentence.
        elif is_path(word):
            group = sorted_words.folders if Path(word).is_dir() else sorted_words.files
            group.append(word)
        # A single word may also be a mistyped path, so only a command that takes a text guesses.
        elif has_several_words(word) or (command and is_text(word)):
            sorted_words.texts.append(word)
        elif sorted_words.files and forms_with_output:
            raise no_such_output(word, forms_with_output(word))
        elif sorted_words.files:
            raise no_such_path(word, forms)
        else:
            raise no_such_path(word, text_advice(words, index, command, forms))
    return sorted_words


def addresses_among(words: list[str]) -> tuple[list[str], list[str]]:
    """The words that are addresses or patterns of files, and the other words."""
    addresses = list[str]()
    others = list[str]()
    for word in words:
        group = addresses if is_address(word) else others
        group.append(word)
    return addresses, others


def is_address(word: str) -> bool:
    """Whether a word is an address, such as s3://BUCKET/NAME, or a pattern, such as mono/*.txt."""
    from nmt.config import PATTERN
    from nmt.files import is_prefixed

    if is_prefixed(word) or is_path(word) or len(word.split()) != 1:
        return False
    # A text may have these characters, but then neither a slash nor a suffix.
    is_pattern = bool(PATTERN.intersection(word)) and LIKE_A_PATH.search(word) is not None
    return "://" in word or (is_pattern and not is_text(word))


def is_path(word: str) -> bool:
    """Whether a word names something that exists, or standard input."""
    from nmt.config import exists

    # An empty word would name the current folder, which nobody means by it.
    return word == "-" or (bool(word.strip()) and exists(word))


def no_such_path(word: str, advice: str) -> NMTError:
    # The default of many commands, so the user may not have written it.
    if word == LATEST_RUN:
        advice = "train a model first with `nmt preprocess` and `nmt train`"
        return NMTError(f"{LATEST_RUN}: no such run; {advice}")
    return NMTError(f"{word or repr(word)}: no such file or folder; {advice}")


def no_such_output(word: str, forms: str) -> NMTError:
    """The error for a word that names nothing, and may be meant as the output."""
    if word == LATEST_RUN:
        return no_such_path(word, forms)
    # With its key, so that the advice is left out if the command has an output already.
    problem = f"{word or repr(word)}: no such file or folder"
    return SettingError(problem, key="output", advice=forms)


def has_several_words(word: str) -> bool:
    """Whether an argument must be a text because it contains blanks."""
    return len(word.split()) > 1 and not names_document(word)


def may_be_text(word: str) -> bool:
    """Whether a word that names no file may be meant as a text."""
    return word.strip() != "" and (" " in word or not LIKE_A_PATH.search(word))


def text_advice(words: list[str], index: int, command: str, forms: str) -> str:
    """Advice to pass a word as a text, if it may be a text and the command takes texts."""
    word = words[index]
    if not command or not may_be_text(word):
        return forms
    others = [*words[:index], *words[index + 1 :]]
    # `text=` takes any word, whatever it looks like; the line can be copied to a shell.
    line = shlex.join(["nmt", command, f"text={word}", *others])
    what = "text" if " " in word else "one word"
    return f"to {command} this {what}, run `{line}`; otherwise, {forms}"


def one_run(words: list[str], key: str = "run") -> dict[str, Any]:
    """Return the run, or the value of another key; raise NMTError if several are given."""
    if len(words) > 1:
        raise NMTError(f"{words[-1]}: this command takes one {key}, but {words[0]} is also given")
    return {key: words[0]}


def find_folder(name: str) -> Path | None:
    """The folder of this name, here or in runs/ or data/; None if there is none."""
    for place in (Path(name), Path("runs", name), Path("data", name)):
        if place.is_dir():
            return place
    return None


def talker() -> "Console":
    """Return a console on standard error that does not wrap lines.

    It prints only in the first process.
    """
    from rich.console import Console

    from nmt.training import is_first_process

    # Text of users may look like markup. A program that reads a message expects it on one line.
    return Console(
        stderr=True,
        highlight=False,
        markup=False,
        soft_wrap=True,
        quiet=not is_first_process(),
    )


def register(add: Add) -> None:
    """Register the commands, metrics and formats of the core."""
    # Paths instead of imports, so that `nmt --help` imports no command.
    for name, summary in SUMMARIES.items():
        add(CommandEntry(name, f"nmt.commands.{name}:COMMAND", summary=summary))
    overview = "nmt.commands.overview.commands"
    runs = "List or delete runs and prepared corpora."
    add(CommandEntry("runs", f"{overview}:RUNS", summary=runs))
    plugins = "List the plugins and what each adds."
    add(CommandEntry("plugins", f"{overview}:PLUGINS", summary=plugins))
    titles = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
    for metric, title in titles.items():
        path = "nmt.evaluation:sacrebleu_score"
        add(
            MetricEntry(
                metric,
                path,
                scores_text=True,
                is_paired=True,
                title=title,
                lower_is_better=metric == "ter",
            )
        )
    precisions = ("float32", "bfloat16")
    add(EngineEntry("torch", "nmt.search.torch_engine:load", precisions=precisions))
    add(CorpusEntry("files", "nmt.preparation.sources:Files"))
    add(PairsEntry(".tsv", "nmt.text.tables:read_tsv"))
    add(PairsEntry(".csv", "nmt.text.tables:read_csv"))
    add(PairsEntry(".jsonl", "nmt.text.blocks:read_json_lines", names_languages=True))
    add(PairsEntry(".parquet", "nmt.text.parquet:read_parquet"))
    add(PairsEntry(".pq", "nmt.text.parquet:read_parquet"))
    add(OptimizerEntry("adam", "nmt.training.module:adam"))
    add(OptimizerEntry("muon", "nmt.training.muon:Muon"))
    add(OptimizerEntry("adafactor", "nmt.training.adafactor:adafactor"))
    for name in ("Model", "load", "prepare", "score", "train"):
        add(PythonEntry(name, f"nmt.api:{name}"))
    add(PythonEntry("NMTError", "nmt.errors:NMTError"))
    add(PythonEntry("Score", "nmt.evaluation:Score"))
    add(PythonEntry("Translation", "nmt.translation:Translation"))
