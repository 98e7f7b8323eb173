"""`nmt translate`: translate raw text line by line."""

from functools import partial

from nmt.commands.console import talker, tell_latest
from nmt.commands.words import input_and_run
from nmt.compose import Command, Option
from nmt.config import TranslateConfig

LESS_MEMORY = "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer threads or devices"


def run(config: TranslateConfig) -> None:
    """Translate a text, a stream of lines, or a corpus on a Ray cluster."""
    tell_latest(config.run)
    if config.ray.enabled:
        from nmt.plugins.cluster.on_ray import translate_corpus

        translate_corpus(config, talker())
    else:
        from nmt.translation import translate

        translate(config)


COMMAND = Command(
    "translate",
    "Translate raw text, line by line.",
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
    options={"--ray": Option("Short for ray.enabled=true.", override="ray.enabled=true")},
    memory=LESS_MEMORY,
)
