"""Answers to mistakes: words of other toolkits, such as `--max-tokens`, and YAML files."""

from nmt.extensions import Add, AnswerEntry


def register(add: Add) -> None:
    here = "nmt.plugins.answers"
    answers = AnswerEntry(
        "mistakes",
        f"{here}.foreign_words:answer",
        check_files=f"{here}.option_files:check_files",
    )
    add(answers)
