"""Flag translations that are likely failures."""

from collections.abc import Callable
from functools import cache, partial

from nmt.files import ModelDescription, within
from nmt.text import scripts_of_characters, scripts_of_language
from nmt.translation.directions import Direction
from nmt.translation.foreign import is_left_as_it_is
from nmt.translation.language_tags import untagged
from nmt.translation.lines import Line
from nmt.translation.models import Models
from nmt.translation.stages import Translation

COPIED = "copied_source"


def flagger(
    models: Models, direction: Direction | None = None
) -> Callable[[str, Translation], list[str]]:
    """A function that returns flags for likely failures, given a line and its translation.

    `direction` has the languages of lines without a tag. None: those that the model states.
    """
    from nmt.flags import flags as find_flags  # compiles patterns that few translations need

    description = models.descriptions[0]
    default = direction or Direction(description.source, description.target or "")
    scripts_into = cache(partial(target_scripts, models.descriptions))

    def flags_of(source: str, translation: Translation) -> list[str]:
        details = translation.details
        log_probabilities = details.token_log_probabilities if details else []
        line = untagged(source, models.tokenizer, default=default)
        # A refused line has no translation, so its tag is not known here.
        assert isinstance(line, Line)
        of_tag = models.tokenizer.languages_of(line.tag.strip())
        languages = Direction(*of_tag) if any(of_tag) else default
        text = translation.text
        scripts = scripts_into(languages.target)
        flags = find_flags(line.text, text, scripts, log_probabilities, languages.target)
        # These know only the target language, in which the whole line may be written.
        if COPIED not in flags and is_left_as_it_is(line.text, text, languages.source):
            flags.append(COPIED)
        return flags

    return flags_of


def target_scripts(descriptions: list[ModelDescription], target: str) -> frozenset[str] | None:
    """The writing systems of the training targets or, if these are unknown, of the target language.

    None if both are unknown.
    """
    # A language may have several scripts, as Serbian has; the corpus shows which script it uses.
    characters = within(descriptions[0].training, "characters", "target")
    if isinstance(characters, str):
        scripts = scripts_of_characters(characters)
        if scripts:
            return scripts
    return scripts_of_language(target)
