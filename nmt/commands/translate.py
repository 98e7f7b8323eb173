"""`nmt translate`: translate raw text line by line."""

from functools import partial

from nmt.commands.console import tell_latest
from nmt.commands.words import input_and_run
from nmt.config import Command, TranslateConfig

LESS_MEMORY = "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer threads or devices"


def run(config: TranslateConfig) -> None:
    """Translate a text, a stream of lines, a document, or what a plugin's options say."""
    from nmt.translation import translate

    tell_latest(config.translator.run)
    for options in config.plugins.values():
        if getattr(options, "enabled", False):
            options.run_instead(config)
            return
    translate(config)


COMMAND = Command(
    "translate",
    TranslateConfig,
    run,
    partial(input_and_run, "translate"),
    usage="[FILE or 'A TEXT'] [RUN]...",
    example="runs/mine < input.en > output.de",
    keys=(
        "run=runs/mine input=input.en output=output.de decode.beam_size=8 decode=greedy decode.n_best=4 "
        "format=jsonl engine=ctranslate2 precision=int8 devices=4 threads=2"
    ),
    texts=("text", "target", "source_prefix", "target_prefix"),
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
