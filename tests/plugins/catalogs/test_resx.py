"""Resources of .NET, compared with lxml."""

import pytest
from lxml import etree

from nmt.errors import NMTError
from nmt.translation import read_document
from tests.helpers.pseudo import pseudo

FILE = """<?xml version="1.0" encoding="utf-8"?>
<root>
  <!-- A comment -->
  <resheader name="resmimetype"><value>text/microsoft-resx</value></resheader>
  <data name="Open" xml:space="preserve">
    <value>&amp;Open {0:N2} files &lt;b&gt;now&lt;/b&gt;</value>
    <comment>A menu item</comment>
  </data>
  <data name="FontSize"><value>Font size:</value></data>
  <data name="Empty"><value /></data>
  <data name="Lines"><value>First line.
Second line.</value></data>
  <data name="$this.Text"><value>A window</value></data>
  <data name="$this.Font"><value>Sans Serif, 9pt</value></data>
  <data name="&gt;&gt;label1.Name"><value>my label</value></data>
  <data name="label1.Name"><value>my label</value></data>
  <data name="label1.Size" type="System.Drawing.Size"><value>12, 13 px</value></data>
  <data name="Icon" type="System.Resources.ResXFileRef"><value>a file;b</value></data>
  <data name="Image" mimetype="application/x"><value>iVBORw0KGgo AAAA</value></data>
</root>
"""
TRANSLATED = {
    "Open": "&OPEN {0:N2} FILES <b>NOW</b>",
    "FontSize": "FONT SIZE:",
    "Lines": "FIRST LINE.\nSECOND LINE.",
    "$this.Text": "A WINDOW",
}


def test_only_strings_that_users_read_are_translated():
    _, result, notice = pseudo("resx", FILE)
    before = etree.fromstring(FILE.encode())
    after = etree.fromstring(result.encode())
    for entry, translation in zip(before.iter(), after.iter(), strict=True):
        name = entry.getparent().get("name") if entry.tag == "value" else None
        assert translation.text == TRANSLATED.get(name, entry.text)
        assert translation.attrib == entry.attrib
        assert translation.tail == entry.tail
    assert not notice


def test_a_file_in_another_encoding_keeps_it():
    text = '<?xml version="1.0" encoding="utf-16"?><root><data name="a"><value>Größe</value></data></root>'
    document = read_document("resx", text.encode("utf-16"))
    assert document.lines == ["Größe"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<root>\n<data>\n</root>", "line 3: not well-formed"),
        ("<resources/>", "not a file of .NET resources"),
    ],
)
def test_other_files_are_errors(text: str, message: str):
    with pytest.raises(NMTError, match=message):
        read_document("resx", text.encode())


def test_a_value_with_a_comment_stays_and_is_counted():
    text = '<root><data name="a"><value>Go <!-- x --> home</value></data></root>'
    lines, result, notice = pseudo("resx", text)
    assert not lines
    assert result == text
    assert notice == "strings with comments or elements of XML left untranslated: 1"
