"""The stage that takes translations from a memory, and lists similar entries for other lines.

A line that is in the memory is not searched. In a line with several sentences, those that are in
the memory are not searched, either; the model translates what is between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from nmt.config import NMTError, TranslatorOptions, shown
from nmt.plugins.memory.files import (
    States,
    can_be_empty,
    load_memory,
    names_languages,
    states_of,
)
from nmt.plugins.memory.kept import Fit, KeptItems
from nmt.plugins.memory.memory import MOST_SIMILAR, Memories
from nmt.plugins.memory.pairing import details_of_line, sentences_of
from nmt.plugins.memory.pieces import Piece, join_pieces
from nmt.text import Tokenizer, canonical
from nmt.translation import (
    EXACT_MATCH,
    SENTENCES_MATCH,
    Direction,
    Limits,
    Line,
    MemoryEntry,
    MemoryMatch,
    Outcome,
    RefusedLine,
    Rest,
    Stage,
    Translation,
    language_of,
    warn,
)

EXACT = "translated from the translation memory"
"""The note for a line that is in the memory."""
SENTENCES = "sentences were translated from the translation memory"
FUZZY = "the translation memory has a similar entry"
"""The note for a line that the model translated; its value is the entry's source."""
UNUSABLE = (
    "an entry of the translation memory has other placeholders or protected items and was not used"
)
"""The note for a line that is in the memory, but with a translation that a program cannot use."""
OTHER_NUMBERS = "the translation memory has other numbers, units or dates; check the translation"
REFUSED_NUMBERS = (
    "left untranslated, because the translation memory has other numbers, units or dates; "
    "correct the entry"
)
"""The note for a line that a document leaves as it is: its program needs the same items."""
FLAG = "protected"
"""The flag of a translation whose items are not those of its source."""


Span = tuple[int, int]


@dataclass
class PlannedLine:
    """How a line is to be translated."""

    line: Line
    exact: MemoryEntry | None = None
    """The entry for the whole line."""
    pieces: list[Piece] = field(default_factory=list)
    """The stretches of a line with sentences that are in the memory; otherwise empty."""
    similar: list[MemoryEntry] = field(default_factory=list)
    unusable: list[MemoryEntry] = field(default_factory=list)
    """Entries for the line and its sentences whose targets do not keep what they must."""
    with_other_numbers: list[MemoryEntry] = field(default_factory=list)
    """The entries among those used whose items may be written in another form."""

    @property
    def searched(self) -> list[Line]:
        """What the model translates."""
        if self.exact:
            return []
        if not self.pieces:
            return [self.line]
        return [replace(self.line, text=piece.text) for piece in self.pieces if not piece.entry]


class MemoryStage(Stage):
    """Translates lines from a memory."""

    translates: ClassVar[bool] = True

    def __init__(self, options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> None:
        keys = options.plugins["memory"]
        self.entries: list[str] = keys.memory
        self.minimum: float = keys.memory_minimum
        protection = options.plugins.get("protection")
        self.kept = KeptItems(protection.protect if protection else [])
        self.prefix = options.target_prefix
        self.tokenizer = tokenizer
        self.splits = limits.split
        self.direction = Direction(limits.language, limits.target)
        self.is_multilingual = bool(tokenizer.tags or tokenizer.languages)
        self.memories = dict[Direction, tuple[States, Memories]]()
        """The memories read so far; only `refresh` reads files that have changed."""
        self.problem = ""
        """Why `refresh` could not read a memory, which is reported once."""
        self.check_files()
        memory = self.memory_for(self.direction)
        is_empty = memory is not None and not memory
        if is_empty and not self.is_multilingual and not can_be_empty(self.entries, self.direction):
            raise NMTError(
                f"memory={shown(','.join(self.entries))}: contains no pair of the model's "
                f"languages, {limits.language or 'source'} and {limits.target or 'target'}"
            )

    def check_files(self) -> None:
        """Raise NMTError for a file whose pairs a model of several languages could mistake."""
        if not self.is_multilingual:
            return
        for entry in self.entries:
            if not names_languages(entry, self.direction):
                raise NMTError(
                    f"memory={entry}: does not name its languages, which a model of several "
                    "languages needs; use .tmx or .jsonl"
                )

    def memory_for(self, direction: Direction) -> Memories | None:
        """The memory for a direction; None if the languages are not known."""
        if self.is_multilingual and not all(direction):
            return None
        if direction not in self.memories:
            # Before the files are read, so that a later change is noticed.
            states = states_of(self.entries, direction)
            memories = load_memory(self.entries, direction, self.minimum)
            self.memories[direction] = states, memories
        return self.memories[direction][1]

    def refresh(self) -> None:
        """Read the memories whose files have changed; keeps a memory that cannot be read."""
        for direction, (states, memories) in list(self.memories.items()):
            current = states
            try:
                current = states_of(self.entries, direction)
                if current == states:
                    continue
                # Other threads that notice the change wait there for the same memory.
                memories = load_memory(self.entries, direction, self.minimum)
                self.problem = ""
            except (NMTError, OSError) as error:
                # A file may be missing for a moment while another program replaces it.
                if str(error) != self.problem:
                    warn(f"{error}; the server keeps the memory as it was")
                self.problem = str(error)
            # A damaged file is not read again until it changes.
            self.memories[direction] = current, memories

    def memory_of(self, line: Line) -> Memories | None:
        """The memory for the direction of a line, which its tag may name."""
        tag = line.tag.strip()
        source, target = self.tokenizer.languages_of(tag)
        # In most models, a tag names the target language only.
        target = target or language_of(tag)
        direction = Direction(source or self.direction.source, target or self.direction.target)
        return self.memory_for(direction)

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        plans = [self.plan(line) for line in lines]
        searched = list[Line]()
        for plan in plans:
            searched += plan.searched
        # In one call, so that the model translates as large batches as without a memory.
        results = iter(rest(searched)) if searched else iter(())
        outcomes = list[Outcome]()
        for plan in plans:
            outcomes.append(self.outcome(plan, [next(results) for _ in plan.searched]))
        return outcomes

    def plan(self, line: Line) -> PlannedLine:
        text = canonical(line.text)
        memory = self.memory_of(line)
        plan = PlannedLine(line)
        if memory is None or not text:
            return plan
        exact = self.usable_entry(text, memory, plan)
        if exact and exact.target.startswith(self.prefix):
            plan.exact = exact
            return plan
        sentences = sentences_of(text, self.direction.source) if self.splits else []
        # A prefix is that of the line, so the memory cannot translate a sentence of it.
        if len(sentences) > 1 and not self.prefix:
            plan.pieces = self.pieces_of(text, sentences, memory, plan)
        if not plan.pieces:
            plan.similar = most_similar(memory, text, sentences)
        return plan

    def usable_entry(self, text: str, memory: Memories, plan: PlannedLine) -> MemoryEntry | None:
        """The entry for a line or a sentence, unless its target lacks what it must keep.

        Adds the entry to those of the plan that users should know about.
        """
        entry = memory.exact(text)
        if entry is None:
            return None
        fit = self.kept.fit(entry)
        # The model keeps placeholders, and the line may not go without a translation.
        if fit is Fit.UNUSABLE:
            plan.unusable.append(entry)
            return None
        if fit is Fit.OTHER_NUMBERS:
            plan.with_other_numbers.append(entry)
        return entry

    def pieces_of(
        self, text: str, sentences: Sequence[Span], memory: Memories, plan: PlannedLine
    ) -> list[Piece]:
        """The stretches of a text: sentences that are in the memory, and what is between them.

        Empty if no sentence is in the memory.
        """
        pieces = list[Piece]()
        for begin, end in sentences:
            entry = self.usable_entry(text[begin:end], memory, plan)
            # Neighbors that the model translates stay together.
            if pieces and not entry and not pieces[-1].entry:
                begin = pieces.pop().begin
            pieces.append(Piece(begin, text[begin:end], entry))
        return pieces if any(piece.entry for piece in pieces) else []

    def outcome(self, plan: PlannedLine, searched: Sequence[Outcome]) -> Outcome:
        """The outcome of a line, given the outcomes of what the model translated."""
        for outcome in searched:
            if isinstance(outcome, RefusedLine):
                return outcome
        rows = [outcome for outcome in searched if not isinstance(outcome, RefusedLine)]
        translations = self.translations_of(plan, rows)
        for translation in translations:
            if plan.unusable:
                translation.notes[UNUSABLE] = repr(shown(plan.unusable[0].target))
            if plan.with_other_numbers:
                target = repr(shown(plan.with_other_numbers[0].target))
                translation.notes[OTHER_NUMBERS] = target
                translation.refusals[REFUSED_NUMBERS] = target
                translation.flags.append(FLAG)
        return translations

    def translations_of(
        self, plan: PlannedLine, rows: Sequence[list[Translation]]
    ) -> list[Translation]:
        """The translations of a line, best first, given those of what the model translated."""
        if plan.exact:
            target = plan.exact.target
            # Certain, so it has the score of a probability of 1.
            translation = Translation(target, 0.0, 0.0)
            if plan.line.align:
                source = canonical(plan.line.text)
                translation.details = details_of_line(source, target, self.direction)
            return marked([translation], MemoryMatch(EXACT_MATCH, [plan.exact]), EXACT, "")
        if plan.pieces:
            entries = [piece.entry for piece in plan.pieces if piece.entry]
            translations = join_pieces(plan.pieces, rows, plan.line.align)
            match = MemoryMatch(SENTENCES_MATCH, entries)
            return marked(translations, match, SENTENCES, "")
        [translations] = rows
        if not plan.similar:
            return translations
        best = plan.similar[0]
        details = f"{shown(best.source)!r} ({best.score:.0%})"
        return marked(translations, MemoryMatch("fuzzy", plan.similar), FUZZY, details)

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        return {"memory": best.memory.as_json()} if best.memory else {}


def marked(
    translations: list[Translation], match: MemoryMatch, note: str, details: str
) -> list[Translation]:
    """Translations with what the memory has for their line, and a note about it."""
    for translation in translations:
        translation.memory = match
        translation.notes[note] = details
    return translations


def most_similar(
    memory: Memories, text: str, sentences: Sequence[tuple[int, int]]
) -> list[MemoryEntry]:
    """The entries most similar to a text; if there are none, those similar to its sentences."""
    entries = memory.similar(text)
    if entries or len(sentences) < 2:
        return entries
    of_sentences = list[MemoryEntry]()
    for begin, end in sentences:
        of_sentences += memory.similar(text[begin:end])
    # Each entry once, although a text may repeat a sentence; the sort is stable.
    distinct = list(dict.fromkeys(of_sentences))
    return sorted(distinct, key=lambda entry: -entry.score)[:MOST_SIMILAR]


def memory_stage(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> MemoryStage:
    return MemoryStage(options, tokenizer, limits)
