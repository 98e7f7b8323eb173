"""Topics and maps of DITA (https://docs.oasis-open.org/dita/dita/v1.3)."""

from nmt.plugins.documents import Element, Part
from nmt.plugins.prose.manual import Manual, has_letters
from nmt.plugins.prose.vocabulary import Vocabulary

KEYWORDS = "keywords left untranslated"
ROOTS = """
    bookmap classificationMap concept dita glossentry glossgroup learningAssessment
    learningBookmap learningContent learningGroupMap learningMap learningObjectMap
    learningOverview learningPlan learningSummary map reference subjectScheme task topic
    troubleshooting
"""
BLOCKS = """
    abstract alt backmatter body bodydiv booklibrary bookmeta booktitle booktitlealt cause
    chdesc chdeschd chhead choice choices choicetable choption choptionhd chrow cmd colspec
    conbody conbodydiv condition consequence context dd ddhd desc diagnostics div dl dlentry
    dlhead dt dthd entry example fallback fig figgroup frontmatter glossAbbreviation
    glossAcronym glossBody glossdef glossScopeNote glossShortForm glossSurfaceForm glossSynonym
    glossterm glossUsage hazardstatement hazardsymbol howtoavoid info keywords li link linkinfo
    linklist linkpool linktext longdescref lq mainbooktitle messagepanel metadata navtitle note
    ol p parml pd plentry postreq prereq prolog propdesc propdeschd properties property prophead
    proptype proptypehd propvalue propvaluehd pt refbody refbodydiv refsyn related-links relcell
    relcolspec relheader relrow reltable remedy responsibleParty result row searchtitle section
    sectiondiv shortdesc simpletable sl sli stentry step stepresult steps steps-informal
    steps-unordered stepsection steptroubleshooting stepxmp sthead strow substep substeps table
    taskbody tasktroubleshooting tbody tgroup thead title titlealt titlealts topicgroup
    topichead topicmeta topicref topicset topicsetref troublebody troubleSolution tutorialinfo
    typeofhazard ul
"""
INLINE = """
    abbreviated-form anchorref b cite coords footnoteref i image include line-break line-through
    longquoteref msgph overline ph q shape sort-as sub sup term text tt u xref
"""
LABELS = "menucascade uicontrol wintitle"
NOTES = "fn indexterm index-see index-see-also index-sort-as"
COPIED = """
    apiname boolean cmdname codeph delim equation-inline equation-number filepath fragref
    keyword kwd markupname math mathml msgnum numcharref oper option parameterentity parmname
    repsep sep shortcut state svg svg-container synnoteref synph systemoutput textentity tm
    userinput var varname xmlatt xmlelement xmlnsname xmlpi
"""
KEPT = """
    anchor audience author authorinformation bookabstract bookchangehistory bookid bookowner
    bookrights brand category codeblock coderef component copyrholder copyright copyryear
    created critdates data data-about ditavalmeta ditavalref equation-block equation-figure
    exportanchors featnum foreign imagemap mathmlref msgblock navref object othermeta param
    permissions platform pre prodinfo prodname prognum publisher publisherinformation resourceid
    revised screen series source syntaxdiagram unknown ux-window vrm vrmlist
"""
COUNTED = {
    "draft-comment": "remarks",
    "required-cleanup": "remarks",
    "lines": "texts with fixed line breaks",
}

DITA = Vocabulary(
    title="DITA",
    evidence="dita",
    blocks=frozenset(ROOTS.split() + BLOCKS.split()),
    inline=frozenset(INLINE.split()),
    labels=frozenset(LABELS.split()),
    notes=frozenset(NOTES.split()),
    copied=frozenset(COPIED.split()),
    kept=frozenset(KEPT.split()),
    titles=frozenset(),
    counted=COUNTED,
    scripts={"sup": "sup", "sub": "sub"},
    attributes=frozenset(["navtitle", "alt", "spectitle", "booktitle"]),
)


class Dita(Manual):
    vocabulary = DITA

    def sentences(self, element: Element) -> list[Part]:
        if element.name == "keywords":
            # Unlike the index entries beside them, they are only for search engines.
            keywords = [child.text for child in element.children if child.name == "keyword"]
            self.left[KEYWORDS] += sum(map(has_letters, keywords))
        return super().sentences(element)
