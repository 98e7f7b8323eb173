"""What is protected in a line, and whether it is in a translation."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings, strategies as st
from options import translate_config

from nmt.errors import NMTError
from nmt.plugins.protection import items as protected
from nmt.plugins.protection.items import Finder, Items, item
from nmt.plugins.protection.plugin import ProtectionConfig

USUAL = Finder(["usual"])


def found(line: str, finder: Finder = USUAL) -> list[str]:
    return [item(line, stretch) for stretch in finder.stretches(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Hello {}, {name} and {0:.2f}!", ["{}", "{name}", "{0:.2f}"]),
        ("{0:{width}} of ${HOME} and $USER", ["{0:{width}}", "${HOME}", "$USER"]),
        ("%s of %(count)d, %1$s, %.2f or %-5d: 100%%", ["%s", "%(count)d", "%1$s", "%.2f", "%-5d", "%%"]),
        ("Hi {{ user.name }}, {% if x %}yes{% endif %}", ["{{ user.name }}", "{% if x %}", "{% endif %}"]),
        ("{n, plural, one {# of {x}} other {# of {y}}} left", ["{n, plural, one {# of {x}} other {# of {y}}}"]),
        ("Edit /etc/hosts, ~/.bashrc, src/main.py.", ["/etc/hosts", "~/.bashrc", "src/main.py"]),
        ("Run `nmt train` or ``a b``", ["`nmt train`", "``a b``"]),
        ("Press <b>File</b>, <br/> or <a href='x y'>this</a>", ["<b>", "</b>", "<br/>", "<a href='x y'>", "</a>"]),
        ("Version 4.2.1, v2.0 or 10.0.0.1:80.", ["4.2.1", "v2.0", "10.0.0.1:80"]),
        ("On 2024-05-01 at 12:30, for 10 m²", ["2024-05-01", "12:30", "10 m²"]),
        ("Use --force-all, MAX_SIZE, __name__ or open()!", ["--force-all", "MAX_SIZE", "__name__", "open()"]),
        ("1'000 km, 12 500 km, 1e-5 m, .5 mm and 1 GB/s", ["1'000 km", "12 500 km", "1e-5 m", ".5 mm", "1 GB/s"]),
        ("See https://a.org/café_(b). Or (www.A.ORG/{id}).", ["https://a.org/café_(b)", "www.A.ORG/{id}"]),
        ("Mail o'neil@a.org, open re\u0301sume\u0301.pdf", ["o'neil@a.org", "re\u0301sume\u0301.pdf"]),
        ("%zu in $HOME/bin on {d, date, short}", ["%zu", "$HOME/bin", "{d, date, short}"]),
        ("Use ``a `b` c``, %p, %'d, %*d or % d", ["``a `b` c``", "%p", "%'d", "%*d", "% d"]),
        ("-10 °C (+5 dB), 3-4 kPa, \u22122 µs, $10 or 5€", ["-10 °C", "+5 dB", "4 kPa", "\u22122 µs", "$10", "5€"]),
        ("%1 of %L2, %n, %(user name)s, %1$,d", ["%1", "%L2", "%n", "%(user name)s", "%1$,d"]),
        ("Save&nbsp;all &#8230; <%= user.name %>", ["&nbsp;", "&#8230;", "<%= user.name %>"]),
        ('At 12:30: open main.c, FOO.TXT, (*.mp3) or ".env"', ["12:30", "main.c", "FOO.TXT", "*.mp3", ".env"]),
        ("Press Ctrl++, ctrl+s or Win+R for 1/2 kg of 1.2.3rc1", ["Ctrl++", "ctrl+s", "Win+R", "1/2 kg", "1.2.3rc1"]),
        ("Install python3.11-doc and 3.11.2-6+deb12u6.", ["python3.11-doc", "3.11.2-6+deb12u6"]),
        ("Fill [[name]], ##ORDER## and :name here", ["[[name]]", "##ORDER##", ":name"]),
        ("uid=%s: stat(%s) failed (%s), `%s'", ["uid=%s", "stat(%s)", "%s", "`%s'"]),
        (r"Install 1.2.3-4ubuntu5 (or x.py-based) in C:\Windows\x", ["1.2.3-4ubuntu5", "x.py-based", r"C:\Windows\x"]),
        # Nothing of these is protected.
        ("An <illegal instruction> or <no such file>", []),
        ("He and/or she paid 5 dollars, 50 percent of them; a < b.", []),
        ("A set { 1, 2 } and the year 1984, at 3 or 4", []),
        ("Version 4.2, _Open file(s), 3:4, a -- b, 1+1 and C++", []),
        ("100 percent. No.It is 24/7 here, e.g. today", []),
    ],
)
def test_stretches(line, expected):
    assert found(line) == expected


def test_a_pattern_that_takes_too_long_is_told_in_a_line(monkeypatch):
    monkeypatch.setattr(protected, "SECONDS", 0.2)
    with pytest.raises(NMTError, match=r"^protect=.* takes more than 0\.2 s for a line of 61 characters"):
        Finder(["(a|aa)+$"]).stretches("a" * 60 + "!")


def test_patterns_of_ones_own_go_first():
    finder = Finder(["usual", "ACME-[0-9]+", "(?i)foo (bar)"])
    assert found("ACME-12 at FOO bar {x}", finder) == ["ACME-12", "FOO bar", "{x}"]
    assert found("ACME-12 {x}", Finder(["ACME-[0-9]+"])) == ["ACME-12"]


@pytest.mark.parametrize(
    ("line", "translation", "arrive"),
    [
        ("a {x} b", "c { x } d", False),
        ("a {x} b", "c {x} {x}", False),
        ("a %s b", "%sc", False),
        ("%s of %s", "%s von %s", True),
        ("%s is done", "%s ist zu 100%s fertig", False),
        ("{a} is done", "{a} ist <b>fertig</b>", False),
        ("%d of %s", "%s von %d", False),
        ("%2$d of %1$s", "%1$s von %2$d", True),
        ("see a.org", "siehe a.org.uk", False),
        ("see www.a.org/b", "siehe www.a.org/b/c", False),
        ("1.5 GB or 40%", "1,5 GB oder 40 %", True),
        ("5 km", "15 km", False),
        ("a,5% and 5%y, or 5%", "5%", True),
    ],
)
def test_what_arrives(line, translation, arrive):
    assert Items(line, USUAL.stretches(line)).arrive(translation) == arrive


def repeats(tree: object) -> list[tuple[str, int]]:
    """The kind and the greatest number of each repetition below a parsed pattern, nested ones multiplied."""
    own = []
    for part in tree if isinstance(tree, list | tuple | re._parser.SubPattern) else ():
        if isinstance(part, tuple) and "REPEAT" in str(part[0]):
            _, high, inner = part[1]
            below = repeats(inner)
            own += [(str(part[0]), int(high) * max([count for _, count in below], default=1)), *below]
        else:
            own += repeats(part)
    return own


def test_the_time_is_bounded_as_repetitions_are_short_or_never_tried_anew():
    own = repeats(re._parser.parse(protected.ALL.pattern))
    assert len(own) > 40
    assert max(count for _, count in own) <= 40_000_000
    # One that is tried anew is short, or what follows it cannot be any of it: folders.
    assert sum(count > 4 for kind, count in own if kind != "POSSESSIVE_REPEAT") <= 1


@pytest.mark.parametrize("item", ["{{a{}}}", "{} km"])
def test_a_line_of_thousands_of_different_items_takes_no_time(item):
    line = " ".join(map(item.format, range(2800)))
    begin = time.process_time()
    assert Items(line, USUAL.stretches(line)).arrive(line)
    assert time.process_time() - begin < 6  # a group for each item took a minute


PARTS = [*"{}%$(`/.@:,x5 -<\\#sé⟦⟧\t", "https://", "{n, plural,", "km", ".py", "{{", "%(a)s", "ACME-1"]


# The same lines each time: of 25,000 such lines one has items that hold parts of others, and is flagged.
@settings(derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
@example("{n, plural,5%{5%")
@example("5%y 5%")
@example("$x$x")
@example("12:30 :12:30 x--a --a")
def test_stretches_are_in_order_and_the_source_holds_its_own_items(line):
    stretches = USUAL.stretches(line)
    assert all(first[1] < second[0] for first, second in pairwise(stretches))
    if stretches:
        assert Items(line, stretches).arrive(" ".join(line.split()))


@pytest.mark.parametrize("value", ["[", "a*", "usal", True, ["usual", "none"], "x" * 9 + "(" * 20_000])
def test_wrong_patterns_are_refused(value):
    assert [ProtectionConfig([kind]).protect for kind in ("usual", "none", "a+")] == [["usual"], [], ["a+"]]
    with pytest.raises(NMTError, match=r"^protect="):
        translate_config("run", protect=value)


@settings(max_examples=300)
@given(st.text("aAx1 .:/\\{}%$#@`()_-wshtp~<>|°KB\u0663,+", max_size=15))
def test_what_is_found_has_a_sign(line):
    assert protected.SIGN.search(line) or not any(each[0] for each in protected.ALL.finditer(line))
