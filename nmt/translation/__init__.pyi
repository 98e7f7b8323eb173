from .inputs import HEAD_BYTES as HEAD_BYTES, advice_for as advice_for, check_lines as check_lines
from .inputs import is_name_of_text as is_name_of_text, kind_of_content as kind_of_content
from .inputs import may_be_code as may_be_code, suffix_of as suffix_of
from .identity import (
    is_same as is_same,
    options_before as options_before,
    what_affects_output as what_affects_output,
)
from .job import input_lines as input_lines, open_document as open_document
from .job import (
    open_job as open_job,
    progress_of as progress_of,
    report as report,
    summarize as summarize,
)
from .job import warn as warn
from .load import (
    best_translations as best_translations,
    find_models as find_models,
    load_translator as load_translator,
)
from .load import (
    kind_of_corpus as kind_of_corpus,
    language_tag as language_tag,
    open_translator as open_translator,
)
from .load import (
    language_of as language_of,
    languages as languages,
    stages_of as stages_of,
    with_engine as with_engine,
)
from .load import Models as Models, flagger as flagger
from .alignment import Details as Details, Words as Words
from .segments import Limits as Limits, Line as Line, Segment as Segment, Segmenter as Segmenter
from .translator import (
    RefusedLine as RefusedLine,
    arriving_blocks as arriving_blocks,
    read_by_thread as read_by_thread,
)
from .translator import (
    Translation as Translation,
    encode_pairs as encode_pairs,
    with_refused as with_refused,
)
from .translator import (
    Outcome as Outcome,
    Translator as Translator,
    lines_of as lines_of,
    score_pairs as score_pairs,
)
from .translator import NO_TRANSLATION as NO_TRANSLATION, Rest as Rest, Stage as Stage
