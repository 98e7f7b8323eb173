"""The output of `nmt COMMAND --help`. Imports Hydra, which takes time, only to show help."""

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nmt.config.command import OPTIONS, Command, groups
from nmt.config.fields import MISSING
from nmt.config.members import Member, keys_of
from nmt.config.suggestions import nearest
from nmt.config.trees import flatten, is_inside
from nmt.config.values import exists, in_words
from nmt.errors import NMTError
from nmt.extensions import CommandEntry
from nmt.registry import entries_of

WIDTH = 100
"""The width of help pages, in columns."""
WIDEST_NAME = 34
"""Width of the column of names; longer names get a separate line."""
INDENT = "  "
GAP = "  "
ALL = "all"
GROUPS_TITLE = "Groups of keys; list them with --help GROUP or --help all"

Row = tuple[str, str]
"""A name, such as `seed=1`, and its meaning."""


def help_text(command: Command, words: list[str], config_dir: Path | None) -> str:
    """The first page, or the keys of the group named in `words`; NMTError for an unknown group."""
    page = Help(command, config_dir)
    topic = topic_of(words)
    if topic is None:
        return page.first_page()
    return page.page_of_keys(topic)


def topic_of(words: list[str]) -> str | None:
    """The first word that is neither KEY=VALUE nor a file."""
    from nmt.config.overrides import is_bare

    for word in words:
        # `nmt translate FILE --help` asks about the command: FILE is not a group.
        if is_bare(word) and not exists(word):
            return word
    return None


@dataclass(frozen=True)
class Help:
    """The pages of help of one command."""

    command: Command
    config_dir: Path | None

    def first_page(self) -> str:
        """The usage, examples, keys outside of groups, the groups and the options."""
        command = self.command
        words = ["Usage: nmt", command.name, command.usage, "[KEY=VALUE]... [OPTIONS]"]
        lines = [
            " ".join(filter(None, words)),
            "",
            entries_of(CommandEntry)[command.name].summary,
        ]
        if command.examples:  # a plugin's command may have none
            lines += ["", "Examples"]
            lines += [f"  nmt {command.name} {example}".rstrip() for example in command.examples]
        sections = {
            "Keys": self.rows_of_first_page(),
            GROUPS_TITLE: self.rows_of_groups(),
            "Options": self.rows_of_options(),
        }
        for title, rows in sections.items():
            if rows:
                lines += ["", title, table(rows)]
        return "\n".join(lines) + "\n"

    def page_of_keys(self, topic: str) -> str:
        """The keys of a group, or with the topic "all" the keys of all groups."""
        about = self.descriptions()
        topics = [ALL, *about]
        if topic not in topics:
            raise NMTError(f"--help {topic}: no such group; {nearest(topic, topics)}")
        rows = self.rows_of_keys()
        listed: list[Row] = []
        if topic == ALL:
            read = [name for name in rows if self.is_read(name)]
            # Keys outside of groups come first.
            listed = [rows[name] for name in read if "." not in name]
            listed += [rows[name] for name in read if "." in name]
        else:
            listed.append((topic, about[topic]))
            listed += [row for name, row in rows.items() if name.startswith(f"{topic}.")]
        title = f"Keys of nmt {self.command.name}, with their defaults and meanings"
        return f"{title}\n{table(listed)}\n"

    def members(self) -> dict[str, Member]:
        return keys_of(self.command.config)

    def rows_of_keys(self) -> dict[str, Row]:
        """Each key -> its default and its meaning."""
        # From the composed configuration, because YAML files may change the defaults of fields.
        defaults = self.defaults()
        rows = {}
        for name, member in self.members().items():
            default = defaults.get(name, in_words(None))
            rows[name] = (f"{name}={default}", self.meaning(member))
        return rows

    def defaults(self) -> dict[str, str]:
        """Each key -> its value in the composed configuration."""
        from nmt.config.composition import default_tree

        # Not resolved: `run=runs/${name}` says more than the name of a run that nobody has chosen.
        defaults = {}
        for name, value in flatten(default_tree(self.command)).items():
            # OmegaConf's ??? would mean nothing to a reader.
            defaults[name] = in_words(value).replace(MISSING, "REQUIRED")
        return defaults

    def meaning(self, member: Member) -> str:
        """The help of a key, without the commands that read it if only this one does."""
        return member.text if member.only_for == (self.command.name,) else member.help

    def is_read(self, key: str) -> bool:
        """False for a key or group that the command hides or that is only for other commands."""
        member = self.members().get(key)
        # Commands share records, such as that of `preprocess` and `train`.
        if member and member.only_for and self.command.name not in member.only_for:
            return False
        hidden = self.command.hides.split()
        return not any(is_inside(key, name) for name in hidden)

    def rows_of_first_page(self) -> list[Row]:
        """The keys outside of groups."""
        rows = []
        # One sentence for each key, so that the first page fits a screen.
        for key, (name, meaning) in self.rows_of_keys().items():
            if "." not in key and self.is_read(key):
                rows.append((name, first_sentence(meaning)))
        return rows

    def descriptions(self) -> dict[str, str]:
        """Each group -> its options or, if there is no choice, the description of its record."""
        about: dict[str, str] = {}
        for name, member in self.members().items():
            if "." in name:
                group_name = name.split(".")[0]
                # The first key's record: a group may contain keys of plugins, which have separate
                # records.
                about.setdefault(group_name, first_sentence(member.record.__doc__))
        for name, group in groups(self.command, self.config_dir).items():
            if len(group.options) > 1:
                about[name] = listed_options(group.options)
        return about

    def rows_of_groups(self) -> list[Row]:
        options = groups(self.command, self.config_dir)
        rows = []
        for name, description in self.descriptions().items():
            if not self.is_read(name):
                continue
            if name in options:
                default = options[name].default or in_words(None)
                rows.append((f"{name}={default}", description))
            else:
                rows.append((name, description))
        return rows

    def rows_of_options(self) -> list[Row]:
        rows = list(OPTIONS.items())
        for name, override in self.command.options.items():
            rows.append((name, f"Short for {override}."))
        return rows


def listed_options(options: Iterable[str]) -> str:
    """List a group's options; for each subfolder, give only the number of its options."""
    names = []
    counts: dict[str, int] = {}
    for option in options:
        # A folder such as table3 has an option per row, and the first page should fit a screen.
        folder, slash, _ = option.partition("/")
        if slash:
            counts[folder] = counts.get(folder, 0) + 1
        else:
            names.append(option)
    folders = [f"{folder}/... ({count})" for folder, count in counts.items()]
    return ", ".join([*names, *folders])


def first_sentence(text: str) -> str:
    """The text up to the first period or semicolon, without line breaks."""
    line = " ".join(text.split())
    sentence = re.split(r"(?<=[.;])\s", line, maxsplit=1)[0]
    return sentence.rstrip(".;")


def table(rows: Iterable[Row]) -> str:
    """Format rows as two columns.

    The second column is wrapped. It starts on a new line if the first one is too long.
    """
    rows = list(rows)
    longest = max((len(name) for name, _ in rows), default=0)
    width = min(longest, WIDEST_NAME)
    lines: list[str] = []
    for name, text in rows:
        left = name
        wrapped = textwrap.wrap(text, WIDTH - width - len(INDENT + GAP))
        # A long name would leave too few columns for the text of all rows.
        if len(name) > width:
            lines.append(f"{INDENT}{name}")
            left = ""
        for line in wrapped:
            lines.append(f"{INDENT}{left:{width}}{GAP}{line}".rstrip())
            left = ""
    return "\n".join(lines)
