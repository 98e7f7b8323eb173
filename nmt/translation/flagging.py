"""Flag translations that are likely failures."""

from collections.abc import Callable

from nmt.files import ModelDescription, within
from nmt.text import scripts_of_characters, scripts_of_language
from nmt.translation.foreign import is_left_as_it_is
from nmt.translation.models import Models
from nmt.translation.stages import Translation

COPIED = "copied_source"


def flagger(models: Models) -> Callable[[str, Translation], list[str]]:
    """A function that returns flags for likely failures, given a line and its translation."""
    from nmt.flags import flags as find_flags  # compiles patterns that few translations need

    scripts = target_scripts(models.descriptions)
    source_language = models.descriptions[0].source
    target_language = models.descriptions[0].target or ""

    def flags_of(source: str, translation: Translation) -> list[str]:
        details = translation.details
        log_probabilities = details.token_log_probabilities if details else []
        untagged = source.removeprefix(models.tokenizer.leading_tag(source))
        text = translation.text
        flags = find_flags(untagged, text, scripts, log_probabilities, target_language)
        # These know only the target language, in which the whole line may be written.
        if COPIED not in flags and is_left_as_it_is(untagged, text, source_language):
            flags.append(COPIED)
        return flags

    return flags_of


def target_scripts(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The writing systems of the training targets or, if these are unknown, of the target language.

    None if both are unknown.
    """
    # A language may have several scripts, as Serbian has; the corpus shows which script it uses.
    characters = within(descriptions[0].training, "characters", "target")
    if isinstance(characters, str):
        scripts = scripts_of_characters(characters)
        if scripts:
            return scripts
    return scripts_of_language(descriptions[0].target)
