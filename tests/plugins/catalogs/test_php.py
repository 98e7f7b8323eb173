"""PHP arrays of strings, compared with PHP itself where it is installed."""

import json
import shutil
import subprocess

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, pseudo

FILE = r"""<?php

// It's a comment
/* 'another' => 'comment' */
return [
    'title' => 'It\'s a page \ with text',
    "double" => "First\tand \"second\"; costs \$5\n",
    'list' => ['One thing', 'Two things', ],
    'old' => array('key' => 'Old style'),
    'names' => [
        'accepted' => 'The :attribute must be accepted at 10:30.',
    ],
    'forms' => '{0} No apples|{1} One apple|[2,*] Many apples',
    'joined' => 'a part' . ' of it',
    'called' => strtolower('Some TEXT'),
    'number' => 12,
    'name' => 'app.name',
];
"""
UNCHANGED = ("joined", "called", "number", "name")


def values_of_php(text: str):
    command = ["php", "-r", "echo json_encode(eval(substr(stream_get_contents(STDIN), 5)));"]
    result = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return json.loads(result.stdout)


def test_strings_of_arrays_are_translated():
    lines, result, notice = pseudo("php", FILE)
    assert "It's a page \\ with text" in lines
    assert "'IT\\'S A PAGE \\\\ WITH TEXT'" in result
    assert r'"FIRST\tAND \"SECOND\"; COSTS \$5\n"' in result
    assert "'ONE THING', 'TWO THINGS', ]" in result
    assert "array('key' => 'OLD STYLE')" in result
    assert "'THE :attribute MUST BE ACCEPTED AT 10:30.'" in result
    assert "'{0} NO APPLES|{1} ONE APPLE|[2,*] MANY APPLES'" in result
    for line in FILE.splitlines():
        if line.lstrip().startswith(("//", "/*", *(f"'{key}" for key in UNCHANGED))):
            assert line in result
    assert notice == "strings in expressions left untranslated: 3"


@pytest.mark.skipif(not shutil.which("php"), reason="needs PHP")
def test_php_reads_the_translation():
    _, result, _ = pseudo("php", FILE)
    before = values_of_php(FILE)
    after = values_of_php(result)
    assert list(before) == list(after)
    for key, value in before.items():
        if key in UNCHANGED:
            assert after[key] == value
        else:
            text = json.dumps(value).upper()
            assert json.dumps(after[key]).upper() == text
            assert after[key] != value


def test_assigned_strings_are_translated():
    text = "<?php\n$string['title'] = 'A page';\n$version = 'one two';\n"
    lines, _, _ = pseudo("php", text)
    assert lines == ["A page"]


def test_variables_in_strings_stay_and_are_counted():
    text = "<?php return ['a' => \"You $name\", 'b' => 'A page'];"
    lines, _, notice = pseudo("php", text)
    assert lines == ["A page"]
    assert notice == "strings with variables of PHP left untranslated: 1"


def test_plurals_with_too_few_forms_are_counted():
    text = "<?php return ['a' => 'One apple|:count apples'];"
    document = read_document("php", text.encode(), "pl", "en")
    result = document.join(capitals(document.lines)).decode()
    assert result == text.replace("One apple|:count apples", "ONE APPLE|:count APPLES")
    assert document.notice == "plural messages with fewer forms than pl has: 1"


@pytest.mark.parametrize(
    ("translation", "written"),
    [("l'eau", r"l\'eau"), ("a\\", r"a\\"), ("$x", "$x"), ('"', '"')],
)
def test_signs_are_escaped(translation: str, written: str):
    document = read_document("php", b"<?php return ['a' => 'Some text'];")
    result = document.join([Translated(translation)]).decode()
    assert result == f"<?php return ['a' => '{written}'];"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<p>text</p>", "not a PHP file"),
        ("<?php\nclass A { public $a = ['b' => 'c d']; }", "line 2: a program"),
        ("<?php\nreturn ['a' => 'b];\n", "line 2: an unclosed string"),
        ("<?php\nreturn ['a' => <<<END\nEND];", "line 2: a heredoc"),
        ("<?php return ['a' => 'b c');", "line 1: this bracket closes nothing"),
        ("<?php return ['a' => 'b c'", "nothing closes"),
        ("<?php $a = 1;", "has no array of strings"),
        ("<?php return ['a' => 'b'] ?>\n<p>text", "line 1: text follows"),
    ],
)
def test_other_files_are_errors(text: str, message: str):
    with pytest.raises(NMTError, match=message):
        read_document("php", text.encode())
