"""Ends of sentences by the rules of a language, without sentencex."""

import regex

from nmt.sentences.abbreviations import (
    abbreviation,
    abbreviation_after_number,
    initial,
)
from nmt.sentences.enclosures import BRACKETS, Enclosure, enclosures, enclosures_around
from nmt.sentences.marks import AFTER_CLAUSE, MARK, PERIOD, end_of
from nmt.sentences.rules import INTRODUCTION, LATIN_ABBREVIATIONS, LIST_NUMBER, Rules
from nmt.text import HAN, INVISIBLE, WITHOUT_BLANKS, script

TAIL = 80
"""The number of characters around the end of a sentence that the rules examine."""
MARKS = regex.compile(rf"(?:{MARK}|[;])+")
ELLIPSIS = ".\u2026"
QUESTIONS = "!?\u061f"
QUESTIONS_OF_EAST_ASIA = "!?\uff01\uff1f"
FULL_WIDTH_PERIOD = "\uff0e"
TITLE = "\u300a\u3008"
"""Marks that enclose titles, never direct speech."""
TITLE_OR_SPEECH = "\u300e"
"""A Japanese mark that encloses a title if it is directly after a noun."""
LONG_WORD = 8
"""Where periods belong to abbreviations, a period after more letters still ends a sentence."""
SPEECH_CONTINUES = regex.compile(r"[\s,.\u2026\u2014\u2013-]*\p{Ll}")
NOUN = regex.compile(rf"[{HAN}\u30a1-\u30ff]")
NAME_WITH_MARK = regex.compile(r"(?<!\p{L})Yahoo!$")
IN_KATAKANA = regex.compile("[\u30a1-\u30fa]")
DASH = regex.compile(r"[\u2014\u2013-]\s")
LETTER = regex.compile(r"\p{L}")
OPENING_QUOTE = regex.compile(r"[\p{Ps}\p{Pi}\"\u201e\u201a]")
DATE = regex.compile(r"\d\.\s+\d+\.$")
"""Two numbers with periods, as in `2024. 5. 3.`"""
BETWEEN_NUMBERS = regex.compile(r"\d\.$")
INITIALS = regex.compile(r"(?<!\p{L})[A-Z]\.\s?[A-Z]\.$")
INVISIBLE_END = regex.compile(f"[{INVISIBLE}]+$")


def ends_by_rules(text: str, rules: Rules) -> list[int]:
    """The indices at which sentences end inside a line, by the rules of its language."""
    # Once per line: a search from each mark would take quadratic time in a line of many marks.
    spans = enclosures(text)
    result = []
    begin = 0
    end_pattern = end_of(rules.stops)
    for match in end_pattern.finditer(text):
        candidate = Candidate(text, begin, match, spans, rules)
        # The end of the line always ends a sentence, but is not inside the line.
        if candidate.next_begin < len(text) and candidate.is_end():
            begin = candidate.next_begin
            result.append(begin)
    return result


class Candidate:
    """A possible end of a sentence, and the text around it.

    The text between two sentences may have marks, such as a period, closing quotation marks or
    brackets, an emoji, and blanks. In `He cried: "Stop!" Then`, the attributes are:

        marks       !
        tail        He cried: "Stop!        up to the marks
        body        He cried: "Stop!"       up to the blanks
        end         17, the index after the body
        next_begin  18, where the next sentence would begin
        following   Then
    """

    def __init__(
        self,
        text: str,
        begin: int,
        match: "regex.Match[str]",
        spans: list[Enclosure],
        rules: Rules,
    ) -> None:
        """`match` is a match of `end_of`; `begin` is the index at which the sentence begins."""
        self.text = text
        self.begin = begin
        self.rules = rules
        # The match ends with the blanks before the next sentence.
        self.end = match.start() + len(match[0].rstrip())
        self.next_begin = match.end()
        closing_begin, closing_end = match.span("closing")
        # A straight quotation mark directly after a sentence may open the next one.
        opening = opening_between(spans, closing_begin, closing_end)
        if opening is not None:
            closing_end = opening
            self.end = opening
            self.next_begin = opening
        self.is_closed = closing_begin < closing_end
        """Whether a quotation mark or bracket follows the marks."""
        self.is_before_blank = self.next_begin > self.end
        self.spans = enclosures_around(spans, self.end)
        """The quotes and brackets that the end is in, or that end here."""
        self.following = text[self.next_begin : self.next_begin + TAIL]
        marks = MARKS.match(match[0])
        self.marks = marks[0] if marks else ""
        # Bounded, so that patterns with `$` do not search a whole line for each of its marks.
        tail_begin = max(begin, self.end - TAIL)
        self.tail = text[tail_begin : match.start() + len(self.marks)]
        """The end of the sentence up to its marks, or all of a short sentence."""
        self.body = text[tail_begin : self.end]
        """The same, with the closing marks."""

    def is_end(self) -> bool:
        # First the cheapest check, which excludes most periods of numbers and names, as in 2.5.1.
        if not self.is_before_blank and not self.needs_no_blank():
            return False
        if AFTER_CLAUSE.match(self.following):
            return False
        # The number of an item belongs to the item: `1. Open the door.`
        if LIST_NUMBER.fullmatch(self.body):
            return False
        if self.is_inside() or self.is_continued() or self.is_in_name():
            return False
        # A single period is the only mark that abbreviations and numbers have, too.
        if regex.fullmatch(PERIOD, self.marks):
            return self.ends_with_period()
        if self.is_pause():
            return False
        if self.marks[-1] in "!?;" and not self.is_closed:
            return True
        # After a quote or dots, a lowercase letter continues the sentence: `"What?" she asked.`
        return not self.is_lower(self.following)

    def needs_no_blank(self) -> bool:
        """True for marks that are used only at the end of a sentence.

        These are not ASCII marks, except for !? before a letter of a script without blanks. A
        full-width period after a digit is a decimal point, and an ellipsis may be a pause.
        """
        last_mark = self.marks[-1]
        if last_mark in "!?":
            return WITHOUT_BLANKS.match(self.following) is not None
        if last_mark == FULL_WIDTH_PERIOD:
            return not self.character_before_mark().isdigit()
        # Without a blank, an ASCII mark is usually part of a name: `a.txt`, `System.IO`.
        return last_mark not in ".;\u2026"

    def is_pause(self) -> bool:
        """Whether dots are a pause in a sentence."""
        if self.marks[-1] not in ELLIPSIS:
            return False
        return not self.rules.has_periods or self.following[0] in BRACKETS

    def character_before_mark(self) -> str:
        """The character before the last mark; empty if there is none."""
        return self.tail[-2:-1]

    def is_lower(self, following: str) -> bool:
        """Whether a text begins with a lowercase letter, in a language with capitals.

        Names of programs are Latin, and some begin a sentence in lower case.
        """
        if not self.rules.has_case or not following[:1].islower():
            return False
        return not is_latin(following[0])

    def is_inside(self) -> bool:
        """True inside of quotes and brackets, except for quotes in languages with capitals."""
        for span in self.spans:
            if not span.begin < self.end <= span.end:
                continue
            # Without capitals, nothing after the quote tells
            # whether its sentence continues, so it stays whole.
            if not self.rules.has_case:
                return True
            if span.is_quote:
                if SPEECH_CONTINUES.match(self.text, span.end + 1):
                    return True
            elif self.text[self.begin : span.begin].strip():  # brackets after a word
                return True
        return False

    def is_in_name(self) -> bool:
        """Whether the mark belongs to a name, as in `Yahoo!`, or is in a title."""
        if self.is_closed:
            return self.is_in_title()
        if self.marks == "!" and not self.is_before_blank:
            if NAME_WITH_MARK.search(self.tail):
                return True
            # A Latin name before a Japanese word.
            is_after_latin = is_latin(self.character_before_mark())
            if is_after_latin and IN_KATAKANA.match(self.following):
                return True
        return regex.match(self.rules.after_any_mark, self.following) is not None

    def is_in_title(self) -> bool:
        for span in self.spans:
            if span.end != self.end - 1:
                continue
            opening = self.text[span.begin]
            if opening in TITLE:
                return True
            is_after_word = span.begin > self.begin
            if opening == TITLE_OR_SPEECH and is_after_word:
                return NOUN.match(self.text, span.begin - 1) is not None
        return False

    def is_continued(self) -> bool:
        """Whether the sentence continues after a quote, brackets or exclamation in it.

        A dash, a particle or, in languages without capitals, other words may show that.
        """
        dash = DASH.match(self.following)
        if dash:
            # Russian, for example, sets off reported speech by a dash: `«Привет!» — сказал он`.
            if self.is_lower(self.following[dash.end() :]):
                return True
            may_be_speech = self.is_closed or self.marks[-1] in "!?\u2026"
            if may_be_speech:
                # Only a capital after the dash begins a new sentence, such as the next speaker's.
                letter = LETTER.search(self.following)
                is_new_sentence = letter is not None and letter[0].isupper()
                return not is_new_sentence
        return self.is_before_particle() or self.is_enclosure_in_sentence()

    def is_before_particle(self) -> bool:
        """Whether a particle continues the sentence after a quote or an exclamation."""
        if self.is_closed:
            particles = self.rules.particles
        elif self.marks[-1] in QUESTIONS_OF_EAST_ASIA:
            particles = self.rules.after_exclamation
        else:
            return False
        return bool(particles) and regex.match(particles, self.following) is not None

    def is_enclosure_in_sentence(self) -> bool:
        """Whether the sentence continues after the quote or brackets that end here.

        Only for languages without capitals, in which just the words around an enclosure tell.
        """
        rules = self.rules
        enclosure = self.closed_enclosure()
        if enclosure is None or rules.has_case:
            return False
        # Another quote is a sentence of its own.
        if OPENING_QUOTE.match(self.following):
            return False
        # Thai sentences end without a mark, so a mark in quotes belongs to the quote alone.
        if not rules.has_periods:
            return True
        is_after_words = bool(self.text[self.begin : enclosure.begin].strip())
        if not is_after_words:
            # A quote at the beginning is a separate sentence, unless a verb of saying follows it.
            return enclosure.is_quote and self.is_before(rules.reporting)
        if not enclosure.is_quote:
            return True
        if self.marks[-1] in QUESTIONS and self.is_before(rules.conjunctions):
            return True
        # A button such as "Open..."
        return self.marks[-1] in ELLIPSIS and len(self.marks) > 1

    def is_before(self, words: str) -> bool:
        return regex.match(words, self.following) is not None

    def closed_enclosure(self) -> Enclosure | None:
        """The quote or brackets whose closing mark ends the sentence."""
        if not self.is_closed:
            return None
        # Marks of direction may stand after the closing mark.
        invisible = len(self.body) - len(INVISIBLE_END.sub("", self.body))
        last = self.end - invisible - 1
        for span in self.spans:
            if span.end == last:
                return span
        return None

    def ends_with_period(self) -> bool:
        """Whether a single period ends the sentence, rather than an abbreviation or a number."""
        rules = self.rules
        following = self.following[0]
        # Latin abbreviations occur in text of any script.
        if self.is_lower(following) or self.is_abbreviated(LATIN_ABBREVIATIONS):
            return False
        if not rules.has_periods:
            return self.ends_latin_word()
        # Before initials, because an abbreviation may have a single letter, too.
        ends = self.ends_with_abbreviation()
        if ends is not None:
            return ends
        if initial(rules.initial).search(self.tail):
            return rules.has_case and self.is_latin_name()
        if DATE.search(self.tail):
            return False
        is_between_numbers = BETWEEN_NUMBERS.search(self.tail) and following.isdigit()
        return rules.has_case or not is_between_numbers

    def ends_with_abbreviation(self) -> bool | None:
        """Whether an abbreviation ends the sentence; None if the last word is none."""
        rules = self.rules
        # The order decides for words in several lists:
        # `и т. д.` ends in what looks like an initial.
        if self.is_abbreviated(rules.may_end):
            return True
        if self.following[0].isdigit() and self.is_abbreviated(rules.before_numbers):
            return False
        if self.is_abbreviated_after_number():
            # A year may also end the first words of a sentence, as in `In 1812`.
            return not INTRODUCTION.fullmatch(self.body)
        return False if self.is_abbreviated(rules.abbreviations) else None

    def ends_latin_word(self) -> bool:
        """Whether a period ends a sentence where periods usually belong to abbreviations."""
        letters = LETTER.findall(self.tail.split()[-1])
        if len(letters) > LONG_WORD:
            return True
        # In Thai text, a period after an English word
        # ends an English sentence if a capital follows.
        is_latin_word = len(letters) > 1 and all(map(is_latin, letters))
        return is_latin_word and self.following[0].isupper()

    def is_latin_name(self) -> bool:
        """Whether a Latin letter before a period is a name, as in `written in C`, and no initial.

        Initials are followed by Latin words or preceded by another initial.
        """
        letter = self.character_before_mark()
        if not is_latin(letter) or is_latin(self.following[0]):
            return False
        return not INITIALS.search(self.tail)

    def is_abbreviated(self, words: str) -> bool:
        return bool(words) and abbreviation(words).search(self.tail) is not None

    def is_abbreviated_after_number(self) -> bool:
        words = self.rules.after_numbers
        return bool(words) and abbreviation_after_number(words).search(self.tail) is not None


def opening_between(spans: list[Enclosure], begin: int, end: int) -> int | None:
    """The first index in begin..end - 1 at which an enclosure opens; None if there is none."""
    for span in enclosures_around(spans, end):
        if begin <= span.begin < end:
            return span.begin
    return None


def is_latin(letter: str) -> bool:
    return script(letter) == "LATIN"
