from .job import input_lines as input_lines, open_document as open_document, open_job as open_job
from .job import progress_of as progress_of, warn as warn, what_affects_output as what_affects_output
from .load import Models as Models, best_translations as best_translations, kind_of_corpus as kind_of_corpus
from .load import find_models as find_models, flagger as flagger, language_of as language_of
from .load import language_tag as language_tag, languages as languages, load_translator as load_translator
from .load import open_translator as open_translator, report as report, stages_of as stages_of, summarize as summarize
from .load import translate as translate, with_engine as with_engine
from .segments import Details as Details
from .segments import Limits as Limits, Line as Line, Segment as Segment, Segmenter as Segmenter
from .translator import Outcome as Outcome, RefusedLine as RefusedLine, Rest as Rest, Stage as Stage
from .translator import Translation as Translation, Translator as Translator, arriving_blocks as arriving_blocks
from .translator import encode_pairs as encode_pairs, lines_of as lines_of, read_by_thread as read_by_thread
from .translator import score_pairs as score_pairs, with_refused as with_refused
