from .job import (
    input_lines as input_lines,
    open_document as open_document,
    open_job as open_job,
    progress_of as progress_of,
    warn as warn,
)
from .likelihood import encode_pairs as encode_pairs, encode_tagged as encode_tagged, score_pairs as score_pairs
from .load import (
    CONVERTED_FILES as CONVERTED_FILES,
    find_models as find_models,
    load_translator as load_translator,
    with_engine as with_engine,
)
from .resumption import model_hash as model_hash, what_decides as what_decides
from .segments import RefusedLine as RefusedLine, Segment as Segment, Segmenter as Segmenter, numbers as numbers
from .targets import language_of as language_of, language_tag as language_tag, languages as languages
from .test_set import (
    SPLITS as SPLITS,
    TestSet as TestSet,
    corpus_of_model as corpus_of_model,
    held_out_text as held_out_text,
    kind_of_corpus as kind_of_corpus,
    read_test_set as read_test_set,
    translate_lines as translate_lines,
)
from .token_scores import Details as Details
from .translate import (
    SUMMARIES as SUMMARIES,
    flagger as flagger,
    open_translator as open_translator,
    remark as remark,
    reporter as reporter,
    source_language as source_language,
    summarize as summarize,
    target_language as target_language,
    translate as translate,
)
from .translator import (
    Block as Block,
    Translation as Translation,
    Translator as Translator,
    arriving_blocks as arriving_blocks,
    lines_of as lines_of,
    read_by_thread as read_by_thread,
)
