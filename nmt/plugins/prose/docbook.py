"""DocBook 4 and 5 (https://tdg.docbook.org)."""

import re

from nmt.plugins.documents import Element
from nmt.plugins.prose.manual import Manual
from nmt.plugins.prose.vocabulary import Vocabulary

NAMESPACE = "http://docbook.org/ns/docbook"
DOCUMENT_TYPE = "DTD DocBook"
WITH_ID = re.compile(r"<\w[\w.-]*\s[^<>]*\bxml:id\s*=")
"""A tag with an attribute of DocBook 5, which is `id` in DocBook 4."""
ROOTS = """
    acknowledgements appendix article assembly bibliography book chapter colophon dedication
    glossary index part partintro preface refentry reference refsect1 refsect2 refsect3
    refsection sect1 sect2 sect3 sect4 sect5 section set setindex simplesect topic
"""
BLOCKS = """
    abstract affiliation answer appendixinfo articleinfo attribution author authorblurb
    authorgroup bibliodiv biblioentry bibliomixed blockinfo blockquote bookinfo bridgehead
    callout calloutlist caption caution chapterinfo col colgroup colspec contrib danger editor
    entry entrytbl enumitem enumitemdescription enumsynopsis epigraph equation example fallback
    figure formalpara funcsynopsisinfo glossdef glossdiv glossentry glosslist glosssee
    glossseealso highlights imageobjectco important info informalequation informalexample
    informalfigure informaltable itemizedlist itermset jobtitle legalnotice line linegroup
    listitem lot mediaobject mediaobjectco member msg msgentry msgexplan msgset note orderedlist
    othercredit para personblurb primary primaryie procedure productionset programlistingco
    qandadiv qandaentry qandaset question refentryinfo refmeta refnamediv refpurpose
    refsect1info refsynopsisdiv revdescription revhistory revision revremark row screenco
    screenshot secondary secondaryie sectioninfo see seealso seealsoie seeie seg seglistitem
    segmentedlist segtitle setinfo sidebar simpara simplelist spanspec speaker step
    stepalternatives substeps subtitle table task taskprerequisites taskrelated tasksummary
    tbody td tertiary tertiaryie textobject tfoot tgroup th thead tip title titleabbrev toc
    tocentry tr variablelist varlistentry warning
"""
INLINE = """
    a abbrev acronym action anchor annotation biblioref citetitle co coref emphasis errortext
    firstterm footnoteref glossterm graphic include inlinegraphic link medialabel mousebutton
    olink phrase quote subscript superscript ulink wordasword xref
"""
LABELS = """
    guibutton guiicon guilabel guimenu guimenuitem guisubmenu interface menuchoice
"""
NOTES = "footnote indexterm inlinemediaobject alt"
COPIED = """
    accel application citation citebiblioid citerefentry classname code command computeroutput
    constant corpname database email enumidentifier enumname enumvalue envar errorcode errorname
    errortype exceptionname fieldname filename foreignphrase function hardware initializer
    inlineequation interfacename keycap keycode keycombo keysym lineannotation literal macroname
    markup math mathphrase methodname modifier namespace namespacename nonterminal ooclass
    ooexception oointerface option optional orgname package parameter person personname
    productname productnumber prompt property remap replaceable returnvalue sgmltag shortcut
    state structfield structname svg symbol systemitem tag templatename termdef token trademark
    type typedefname unionname uri userinput varname void year
"""
KEPT = """
    address area areaset areaspec artpagenums audioobject authorinitials bibliocoverage biblioid
    bibliomset bibliorelation biblioset bibliosource classsynopsis cmdsynopsis collab confdates
    confgroup confnum confsponsor conftitle constructorsynopsis contractnum contractsponsor
    copyright cover date destructorsynopsis edition extendedlink fieldsynopsis firstname
    funcprototype funcsynopsis givenname holder honorific imagedata imageobject invpartnumber
    isbn issn issuenum keyword lineage macrosynopsis manvolnum methodsynopsis modespec
    namespacesynopsis objectinfo org othername packagesynopsis pagenums printhistory production
    programlisting pubdate publisher publishername pubsnumber refclass refmiscinfo releaseinfo
    revnumber screen seriesvolnums subject surname synopsis templatesynopsis typedefsynopsis
    unionsynopsis videoobject volumenum
"""
TITLES = "refdescriptor refentrytitle refname"
COUNTED = {
    "remark": "remarks",
    "comment": "remarks",
    "literallayout": "texts with fixed line breaks",
    "keywordset": "lists of keywords",
    "subjectset": "lists of keywords",
}

DOCBOOK = Vocabulary(
    title="DocBook",
    evidence="docbook",
    blocks=frozenset(ROOTS.split() + BLOCKS.split()),
    inline=frozenset(INLINE.split()),
    labels=frozenset(LABELS.split()),
    notes=frozenset(NOTES.split()),
    copied=frozenset(COPIED.split()),
    kept=frozenset(KEPT.split()),
    titles=frozenset(TITLES.split()),
    counted=COUNTED,
    scripts={"superscript": "sup", "subscript": "sub"},
    attributes=frozenset(["xreflabel"]),
)


class DocBook(Manual):
    vocabulary = DOCBOOK

    def language_attribute(self, root: Element) -> str:
        # DocBook 5 has a namespace, and 4 a document type.
        opening = root.file[root.begin : root.inside]
        if NAMESPACE in opening:
            return "xml:lang"
        # Parts of a book, which another file includes, may have neither.
        is_fourth = DOCUMENT_TYPE in root.file[: root.begin]
        has_id = WITH_ID.search(root.file, root.begin) is not None
        return "xml:lang" if has_id and not is_fourth else "lang"
