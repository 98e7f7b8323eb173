"""`nmt translate`: translate raw text line by line."""

from typing import Any

from nmt import translation
from nmt.commands import paths_and_texts
from nmt.config import Command, TranslateConfig, require

LESS_MEMORY = "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer threads or devices"


def run(config: TranslateConfig) -> None:
    translation.translate(config)


def input_and_run(command: str, words: list[str], forms: str = "") -> dict[str, Any]:
    """Return the file or text to translate or parse, and the run or runs."""
    forms = forms or f"`nmt {command} FILE RUN output=OUTPUT` or `nmt {command} 'SOME TEXT' RUN`; all are optional"
    files, folders, texts = paths_and_texts(words, forms)
    require(len(files) + len(texts) < 2, f"{', '.join([*files, *texts])}: give one file or text; {forms}")
    values = {"input": files, "text": texts, "run": folders}
    return {key: items[0] if len(items) == 1 else items for key, items in values.items() if items}


COMMAND = Command(
    *("translate", TranslateConfig, run, lambda words: input_and_run("translate", words)),
    usage="[FILE or 'SOME TEXT'] [RUN]...",
    examples=("'A dog runs across the grass.'", "runs/corpus-30min < input.en > output.de"),
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
