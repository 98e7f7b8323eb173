"""Sentences of languages with Latin letters."""

import pytest

from nmt.sentences.splitting import split_sentences


@pytest.mark.parametrize(
    ("language", "line"),
    [
        (
            "en",
            "Dr. Smith saw No. 5, e.g. the lamp.|It has version 2.5.1-4.|"
            "See Fig. 3, approx. 5 km away!|He left.",
        ),
        ("en", 'The 5" disk is old.|It is big.|The 3" disk is new.'),
        (
            "en",
            'He said: "I came.|I left."|"Really?" she asked.|(It was late.)|Then he (or she) went.',
        ),
        (
            "en",
            "It uses System.IO and .NET.|Wait... what?|See vol. 2, ch. 3.|"
            "Ms. Miller came at 5 p.m.|That is all.",
        ),
        ("en", "1. Open the door.|2) Go in.|Cats, dogs, etc.|They are nice.|ok?|yes!|sure."),
        (
            "de",
            "Die 5. Klasse las im 19. Jahrhundert z.B. Verse.|Dann kam Python 3.|"
            "\u201eDa!\u201c, rief er.",
        ),
        ("de", "Er sah u.a. Hunde usw.|Dann ging er am 3. Mai."),
        ("en", "Tom is ill.|Follow me.|He said no.|It is OK.|It reads XML.|See fig. A here."),
        ("en", "Call No. Seven.|Ask JR. Tom.|It left the U.S.|The end.|It is art.|(Or so.)"),
        ("de", "Er sah mich.|Sie mag.|\u201eUnd wie!\u201c|Ludwig XIV. Regierte er?|Art. 5 gilt."),
        ("it", "Apre il file.|Usa HTML.|Il sig. Rossi va via.|Ecco."),
        ("fr", "M. Dupont est l\u00e0.|\u00ab Bien. \u00bb|Il part."),
        (
            "ja",
            "\u3053\u308c\u306f\u672c\u3067\u3059\u3002|\u305d\u308c\u306f\u30da\u30f3\u3067\u3059\u3002",
        ),
    ],
)
def test_split_sentences(language, line):
    blank = "" if language == "ja" else " "
    text = line.replace("|", blank)
    sentences = [sentence.strip() for sentence in split_sentences(text, language)]
    assert sentences == line.split("|")
