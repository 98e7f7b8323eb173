"""Ends of sentences by the rules of a language, without sentencex."""

from functools import cache

import regex

from nmt.sentences.enclosures import BRACKETS, Enclosure, enclosures, enclosures_around
from nmt.sentences.rules import (
    INTRODUCTION,
    LATIN_ABBREVIATIONS,
    LIST_NUMBER,
    THOUSANDS,
    Rules,
)
from nmt.text import HAN, INVISIBLE, WITHOUT_BLANKS, script

TAIL = 80
"""The number of characters around the end of a sentence that the rules examine."""
# German and Georgian close quotes with a mark that opens them elsewhere.
CLOSING = rf"(?:[\p{{Pe}}\p{{Pf}}\"'{INVISIBLE}]|[\u201c\u2018](?=\s|$))*"
# Unicode calls these marks terminals of sentences, except for the Tibetan ones and the ellipsis. It
# also calls a comma of Burmese a terminal.
COMMA_OF_BURMESE = "\u104a"
MARK = rf"(?:(?!{COMMA_OF_BURMESE})[\p{{Sentence_Terminal}}\u0f0d-\u0f11\u2026])"
PICTURE = r"(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f)"
EMOJI = rf"(?:{PICTURE}[\ufe0f\u200d\p{{Emoji_Modifier}}]*)"
# An emoji belongs to the sentence before, unless a blank separates only the two.
AFTER_MARK = rf"(?P<closing>{CLOSING})(?:{EMOJI}+|\s+{EMOJI}+(?=\s|$))?\s*"
END = regex.compile(rf"{MARK}+{AFTER_MARK}")
"""What may be the end of a sentence, with the blanks that follow."""
AFTER_CLAUSE = regex.compile(
    rf"[,;:)\u060c\u061b\u3001\uff0c\uff1b\uff1a{COMMA_OF_BURMESE}]|{MARK}"
)
PERIOD = "[.\u06d4]"
"""A period, also of Urdu, that may belong to an abbreviation."""
SPEECH_CONTINUES = regex.compile(r"[\s,.\u2026\u2014\u2013-]*\p{Ll}")
TITLE = "\u300a\u3008"
"""Marks that enclose titles, never direct speech."""
TITLE_OR_SPEECH = "\u300e"
"""A Japanese mark that encloses a title if it is directly after a noun."""
NOUN = regex.compile(rf"[{HAN}\u30a1-\u30ff]")
NAME_WITH_MARK = regex.compile(r"(?<!\p{L})Yahoo!$")
IN_KATAKANA = regex.compile("[\u30a1-\u30fa]")
DASH = regex.compile(r"[\u2014\u2013-]\s")
LETTER = regex.compile(r"\p{L}")
OPENING_QUOTE = regex.compile(r"[\p{Ps}\p{Pi}\"\u201e\u201a]")
DATE = regex.compile(r"\d\.\s+\d+\.$")
"""Two numbers with periods, as in `2024. 5. 3.`"""
INITIALS = regex.compile(r"(?<!\p{L})[A-Z]\.\s?[A-Z]\.$")
QUESTIONS = "!?\u061f"
INVISIBLE_END = regex.compile(f"[{INVISIBLE}]+$")
BETWEEN_NUMBERS = regex.compile(r"\d\.$")
LONG_WORD = 8
"""Where periods belong to abbreviations, a period after more letters still ends a sentence."""


def ends_by_rules(text: str, rules: Rules) -> list[int]:
    """Where sentences end inside a line, by the rules of its language."""
    spans = enclosures(text)
    result = []
    begin = 0
    end_pattern = end_of(rules.stops)
    for match in end_pattern.finditer(text):
        candidate = Candidate(text, begin, match, spans, rules)
        if candidate.next_begin < len(text) and candidate.is_end():
            begin = candidate.next_begin
            result.append(begin)
    return result


@cache
def end_of(stops: str) -> "regex.Pattern[str]":
    """END with the further marks of a language."""
    if not stops:
        return END
    return regex.compile(rf"(?:{MARK}|[{stops}])+{AFTER_MARK}")


@cache
def abbreviation(words: str) -> "regex.Pattern[str]":
    """A pattern for one of several abbreviations at the end of a text, with its period."""
    # Only the first letter may be a capital: in Greek, the case of the second letter distinguishes
    # "for example" from "B.C.".
    forms = []
    for word in words.split():
        rest = regex.escape(word[1:]).replace("_", r"\.?\s?")
        forms.append(f"(?i:{regex.escape(word[0])}){rest}")
    return regex.compile(rf"(?<![\p{{L}}\p{{M}}\p{{N}}])(?:{'|'.join(forms)}){PERIOD}$")


@cache
def abbreviation_after_number(words: str) -> "regex.Pattern[str]":
    """A pattern for one of several abbreviations at the end of a text, after a number."""
    forms = "|".join(map(regex.escape, words.split()))
    return regex.compile(rf"[\dIVXLC]\s?(?:{THOUSANDS}\s)?(?:{forms})\.$")


@cache
def initial(letter: str) -> "regex.Pattern[str]":
    """A pattern for a letter with a period that is the last word of a text."""
    return regex.compile(rf"(?<![^\s.(\[\p{{Pi}}\u201e]){letter}{PERIOD}$")


class Candidate:
    """A possible end of a sentence."""

    def __init__(
        self,
        text: str,
        begin: int,
        match: "regex.Match[str]",
        spans: list[Enclosure],
        rules: Rules,
    ) -> None:
        self.text = text
        self.begin = begin
        self.rules = rules
        self.next_begin = match.end()
        self.end = match.start() + len(match[0].rstrip())
        """Without the blanks that follow."""
        closing_end = match.end("closing")
        # A straight quotation mark after a sentence may also open the next one.
        for span in enclosures_around(spans, closing_end):
            if match.start("closing") <= span.begin < closing_end:
                self.next_begin = self.end = closing_end = span.begin
                break
        self.is_before_blank = self.next_begin > self.end
        self.spans = enclosures_around(spans, self.end)
        self.following = text[self.next_begin : self.next_begin + TAIL]
        self.body = text[max(begin, self.end - TAIL) : self.end]
        """The end of the sentence, or a short sentence."""
        marks = regex.match(rf"(?:{MARK}|[;])+", match[0])
        self.marks = marks[0] if marks else ""
        self.is_closed = match.start("closing") < closing_end
        """Whether a quotation mark or bracket follows the mark."""
        self.tail = text[max(begin, self.end - TAIL) : match.start() + len(self.marks)]
        """The end of the sentence up to its mark."""

    def is_end(self) -> bool:
        if not self.is_before_blank and not self.needs_no_blank():
            return False
        if AFTER_CLAUSE.match(self.following) or LIST_NUMBER.fullmatch(self.body):
            return False
        if self.is_inside() or self.is_continued() or self.is_in_name():
            return False
        if regex.fullmatch(PERIOD, self.marks):
            return self.ends_with_period()
        is_ellipsis = self.marks[-1] in ".\u2026"
        if is_ellipsis and (not self.rules.has_periods or self.following[0] in BRACKETS):
            return False
        is_question = self.marks[-1] in "!?;" and not self.is_closed
        return is_question or not self.is_lower(self.following)

    def needs_no_blank(self) -> bool:
        """True for marks that are used only at the end of a sentence.

        These are not ASCII marks, except for !? before a letter of a script without blanks. A
        full-width period after a digit is a decimal point, and an ellipsis may be a pause.
        """
        if self.marks[-1] in "!?":
            return bool(WITHOUT_BLANKS.match(self.following))
        if self.marks[-1] == "\uff0e":
            return not self.tail[-2:-1].isdigit()
        return self.marks[-1] not in ".;\u2026"

    def is_lower(self, following: str) -> bool:
        """Whether a text begins with a lowercase letter, in a language with capitals.

        Names of programs are Latin, and some begin a sentence in lower case.
        """
        return self.rules.has_case and following[:1].islower() and not is_latin(following[0])

    def is_inside(self) -> bool:
        """True inside of quotes and brackets, except for quotes in languages with capitals."""
        for span in self.spans:
            if span.begin < self.end <= span.end:
                is_embedded = bool(self.text[self.begin : span.begin].strip())
                if span.is_quote and SPEECH_CONTINUES.match(self.text, span.end + 1):
                    return True
                if not self.rules.has_case or (is_embedded and not span.is_quote):
                    return True
        return False

    def is_in_name(self) -> bool:
        """Whether the mark belongs to a name, as in `Yahoo!`, or is in a title."""
        following = self.following
        if self.marks == "!" and not (self.is_closed or self.is_before_blank):
            if NAME_WITH_MARK.search(self.tail):
                return True
            if is_latin(self.tail[-2:-1]) and IN_KATAKANA.match(following):
                return True
        if not self.is_closed:
            return bool(regex.match(self.rules.after_any_mark, following))
        for span in self.spans:
            if span.end != self.end - 1:
                continue
            opening = self.text[span.begin]
            if opening in TITLE:
                return True
            is_after_noun = span.begin > self.begin and NOUN.match(self.text, span.begin - 1)
            if opening == TITLE_OR_SPEECH and is_after_noun:
                return True
        return False

    def is_continued(self) -> bool:
        """True if a quote, brackets or an exclamation do not end the sentence that they are in."""
        rules = self.rules
        dash = DASH.match(self.following)
        if dash and self.is_lower(self.following[dash.end() :]):
            return True
        if dash and (self.is_closed or self.marks[-1] in "!?\u2026"):
            letter = LETTER.search(self.following)
            return not (letter and letter[0].isupper())
        continuation = rules.particles if self.is_closed else rules.after_exclamation
        is_exclamation = self.marks[-1] in "!?\uff01\uff1f"
        if not continuation or not (self.is_closed or is_exclamation):
            continuation = "(?!)"  # never matches
        if regex.match(continuation, self.following):
            return True
        last = self.end - len(self.body) + len(INVISIBLE_END.sub("", self.body)) - 1
        closed = [span for span in self.spans if span.end == last]
        if not self.is_closed or not closed or rules.has_case:
            return False
        if OPENING_QUOTE.match(self.following):
            return False
        if not rules.has_periods:
            return True
        is_at_begin = not self.text[self.begin : closed[0].begin].strip()
        is_question = self.marks[-1] in QUESTIONS
        if is_question and not is_at_begin and regex.match(rules.conjunctions, self.following):
            return True
        if not closed[0].is_quote:
            return not is_at_begin
        if not is_at_begin and self.marks[-1] in ".\u2026" and len(self.marks) > 1:
            return True  # a button such as "Open..."
        return is_at_begin and bool(regex.match(rules.reporting, self.following))

    def ends_with_period(self) -> bool:
        """Whether a single period ends the sentence, rather than an abbreviation or a number."""
        rules = self.rules
        following = self.following[0]
        if self.is_lower(following) or self.is_abbreviated(LATIN_ABBREVIATIONS):
            return False
        if not rules.has_periods:
            letters = LETTER.findall(self.tail.split()[-1])
            is_latin_word = len(letters) > 1 and all(map(is_latin, letters))
            return len(letters) > LONG_WORD or (is_latin_word and following.isupper())
        if self.is_abbreviated(rules.may_end):
            return True
        if following.isdigit() and self.is_abbreviated(rules.before_numbers):
            return False
        if rules.after_numbers and abbreviation_after_number(rules.after_numbers).search(self.tail):
            return not INTRODUCTION.fullmatch(self.body)
        if self.is_abbreviated(rules.abbreviations):
            return False
        if initial(rules.initial).search(self.tail):
            return rules.has_case and self.is_latin_name()
        is_date = not rules.has_case and BETWEEN_NUMBERS.search(self.tail) and following.isdigit()
        return not (is_date or DATE.search(self.tail))

    def is_latin_name(self) -> bool:
        """Whether a Latin letter before a period is a name, as in `written in C`, and no initial.

        Initials are followed by Latin words or preceded by another initial.
        """
        letter = self.tail[-2]
        if not is_latin(letter) or is_latin(self.following[0]):
            return False
        return not INITIALS.search(self.tail)

    def is_abbreviated(self, words: str) -> bool:
        return bool(words) and abbreviation(words).search(self.tail) is not None


def is_latin(letter: str) -> bool:
    return script(letter) == "LATIN"
