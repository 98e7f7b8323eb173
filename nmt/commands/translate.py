"""`nmt translate`: raw text in, translations out, line by line."""

from nmt.commands.console import talker
from nmt.compose import Command, Option
from nmt.config import TranslateConfig

LESS_MEMORY = "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer devices"


def run(config: TranslateConfig) -> None:
    """Translate a stream of lines, or a corpus on a Ray cluster."""
    if config.ray.enabled:
        from nmt.translation.on_ray import translate_corpus

        translate_corpus(config, talker())
    else:
        from nmt.translation.translate import translate

        translate(config)


COMMAND = Command(
    "translate",
    "Translate raw text, line by line.",
    TranslateConfig,
    run,
    texts=("source_prefix", "target_prefix"),
    options={"--ray": Option("Short for ray.enabled=true.", override="ray.enabled=true")},
    memory=LESS_MEMORY,
)
