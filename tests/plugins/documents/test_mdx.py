"""MDX: statements, tags and expressions stay, and the text around them is translated."""

import pytest

from nmt.translation import read_document
from tests.helpers.pseudo import capitals, pseudo, same
from tests.plugins.documents.test_documents import translated, turned

ROWS = r"""
# Statements.
import A from 'b';\nimport {\n  C,\n\n  D } from "e";\n\na b => import A from 'b';\nimport {\n  C,\n\n  D } from "e";\n\nA B
export const a = {\n  b: `c\n\n${d} {`,\n};\n\na => export const a = {\n  b: `c\n\n${d} {`,\n};\n\nA
Import a b => IMPORT A B
# Lines of tags.
<Tabs>\n  <Tab value="a">\n    One b\n    c.\n\n    - d\n    - e\n  </Tab>\n</Tabs> => <Tabs>\n  <Tab value="a">\n    ONE B C.\n\n    - D\n    - E\n  </Tab>\n</Tabs>
<Tab label="a b" id="c">\nd\n</Tab> => <Tab label="A B" id="c">\nD\n</Tab>
<Card\n  title='a "b"'\n  x={() => { f("}"); }}\n/>\nc => <Card\n  title='A "B"'\n  x={() => { f("}"); }}\n/>\nC
<A>\n\tb\n\t</A>\n\n<A b={<i>c</i>} /> => <A>\n\tB\n\t</A>\n\n<A b={<i>c</i>} />
{/* a\nb */}\n\n{a &&\n <b>it's</b>}\n\nc => {/* a\nb */}\n\n{a &&\n <b>it's</b>}\n\nC
- a\n\n  <B title="c">\n  d\n  </B> => - A\n\n  <B title="C">\n  D\n  </B>
# Tags in text.
a <b>c</b> <C d={e > f}>g</C> h => A <b>C</b> <C d={e > f}>G</C> H
<summary>a b</summary> => <summary>A B</summary>
press <kbd>Enter</kbd> or {a.b} {/* c */} d => PRESS <kbd>Enter</kbd> OR {a.b} {/* c */} D
a <>b</> <br /> c => A <>B</> <br /> C
## a b {/* #c */}\n\n## d {#e} => ## A B {/* #c */}\n\n## D {#e}
| a |\n|---|\n| <B c={d} /> e {f} | => | A |\n|---|\n| <B c={d} /> E {f} |
# Signs as text.
a \{b c\} \< d => A \{b c} \< D
a < b {c => A \< B \{C
:::note[a b]\nc\n::: => :::note[A B]\nC\n:::
    a b => \x20   A B
"""
CASES = [row.replace(r"\x20", " ").split(" => ") for row in ROWS.strip().split("\n")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [case for case in CASES if len(case) == 2],
)
def test_markup_of_mdx_keeps_its_place(source, expected):
    file = source.replace(r"\n", "\n").replace(r"\t", "\t")
    assert translated("mdx", file, same) == file
    assert translated("mdx", file, capitals) == expected.replace(r"\n", "\n").replace(r"\t", "\t")


def test_elements_stay_in_pairs_in_another_order():
    result = translated("mdx", "one <B c={d}>two *three*</B> {four} five", turned)
    assert result == "FIVE {four} <B c={d}>*THREE* TWO</B> ONE"


def test_texts_in_expressions_are_reported():
    page = '<A title={"b c"} label="d" />\n\ne <F title="g" /> h\n'
    lines, result, notice = pseudo("mdx", page)
    assert lines == ["d", "e h"]
    assert result == '<A title={"b c"} label="D" />\n\nE <F title="g" /> H\n'
    assert notice == (
        "parameters of tags left untranslated: 1; attributes of HTML in text left untranslated: 1"
    )


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["{", "<A ", "{`${", "<A b={", "import {\n\n", "<A b='", "{/*"])
def test_unclosed_signs_do_not_take_quadratic_time(sign):
    page = sign * (20_000 // len(sign)) + "\n\nThe text\n"
    document = read_document("mdx", page.encode())
    assert document.join(same(document.lines)) == page.encode()
