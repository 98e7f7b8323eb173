"""`nmt translate`: translate raw text line by line."""

from functools import partial
from typing import Any

from nmt.commands.console import paths_and_texts
from nmt.config import Command, TranslateConfig
from nmt.errors import NMTError

LESS_MEMORY = "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer threads or devices"


def run(config: TranslateConfig) -> None:
    """Translate a text, a stream of lines, a document, or what a plugin's options say."""
    from nmt.translation import translate

    for options in config.plugins.values():
        if getattr(options, "enabled", False):
            options.run_instead(config)
            return
    translate(config)


def input_and_run(command: str, words: list[str], forms: str = "") -> dict[str, Any]:
    """The file or text to translate or parse, and the run or runs to do it with."""
    forms = forms or f"`nmt {command} FILE RUN`, or `nmt {command} 'A TEXT WITH BLANKS' RUN`; both may be left out"
    files, folders, texts = paths_and_texts(words, forms)
    if len(files) + len(texts) > 1:
        raise NMTError(f"{', '.join([*files, *texts])}: one file or text, please: {forms}")
    values = {"input": files, "text": texts, "run": folders}
    return {key: items[0] if len(items) == 1 else items for key, items in values.items() if items}


COMMAND = Command(
    "translate",
    TranslateConfig,
    run,
    partial(input_and_run, "translate"),
    usage="[FILE or 'A TEXT'] [RUN]...",
    example="runs/mine < input.en > output.de",
    keys="run=runs/mine input=input.en output=output.de decode.beam_size=8 decode=greedy decode.n_best=4 "
    "format=jsonl engine=ctranslate2 precision=int8 devices=4 threads=2",
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
