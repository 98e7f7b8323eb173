from .job import (
    input_lines as input_lines,
    model_hash as model_hash,
    open_document as open_document,
    open_job as open_job,
    progress_of as progress_of,
    warn as warn,
    what_decides as what_decides,
)
from .likelihood import encode_pairs as encode_pairs, score_pairs as score_pairs
from .load import (
    find_models as find_models,
    language_of as language_of,
    language_tag as language_tag,
    languages as languages,
    load_translator as load_translator,
    source_language as source_language,
    stages_of as stages_of,
    target_language as target_language,
    with_engine as with_engine,
)
from .segments import (
    JoinedText as JoinedText,
    Limits as Limits,
    Segment as Segment,
    Segmenter as Segmenter,
    join as join,
    text as text,
)
from .stages import (
    Line as Line,
    Outcome as Outcome,
    RefusedLine as RefusedLine,
    Rest as Rest,
    Stage as Stage,
    Translation as Translation,
    with_refused as with_refused,
)
from .test_set import (
    SPLITS as SPLITS,
    TestSet as TestSet,
    held_out_text as held_out_text,
    kind_of_corpus as kind_of_corpus,
    read_test_set as read_test_set,
    translate_lines as translate_lines,
)
from .token_scores import Details as Details, words_of_tokens as words_of_tokens
from .translate import (
    flagger as flagger,
    open_translator as open_translator,
    remark as remark,
    report as report,
    summaries as summaries,
    summarize as summarize,
    translate as translate,
)
from .translator import (
    Block as Block,
    Translator as Translator,
    arriving_blocks as arriving_blocks,
    lines_of as lines_of,
    read_by_thread as read_by_thread,
)
