from .compression import MAGIC as MAGIC, compressor as compressor
from .comma_separated import CELL_SEPARATORS as CELL_SEPARATORS, separator_of as separator_of
from .comma_separated import comma_separated_rows as comma_separated_rows
from .files import (
    LINE_BYTES as LINE_BYTES,
    TOO_LONG as TOO_LONG,
    MalformedLine as MalformedLine,
    Pair as Pair,
)
from .files import (
    decode as decode,
    decoded as decoded,
    table_format as table_format,
    is_text as is_text,
)
from .files import (
    not_parallel as not_parallel,
    open_text as open_text,
    parallel as parallel,
    problem_of as problem_of,
)
from .files import raw_lines as raw_lines, read_lines as read_lines, read_texts as read_texts
from .files import (
    reading as reading,
    resolve as resolve,
    texts_of as texts_of,
    without_end as without_end,
)
from .han import foreign_han as foreign_han, lacking_han as lacking_han
from .languages import (
    SCRIPTS as SCRIPTS,
    direction as direction,
    language_of_file as language_of_file,
)
from .languages import scripts_of_language as scripts_of_language
from .scripts import CHARACTERS_OF_A_WORD as CHARACTERS_OF_A_WORD, HAN as HAN, HANGUL as HANGUL
from .scripts import CYRILLIC as CYRILLIC, GREEK as GREEK, LATIN as LATIN, MARKS as MARKS
from .scripts import DEPENDENT as DEPENDENT, INFLECTED_WORD as INFLECTED_WORD
from .scripts import HIRAGANA as HIRAGANA, KATAKANA_WORD as KATAKANA_WORD
from .scripts import LEADING_VOWEL as LEADING_VOWEL, PARTICLE as PARTICLE
from .scripts import REPETITION as REPETITION
from .scripts import EXTENDING as EXTENDING, KANA as KANA, NO_BLANK_BESIDE as NO_BLANK_BESIDE
from .scripts import (
    SOUTH_EAST as SOUTH_EAST,
    SYLLABLE as SYLLABLE,
    WITHOUT_BLANKS as WITHOUT_BLANKS,
)
from .scripts import KATAKANA as KATAKANA, SPELLING as SPELLING
from .scripts import WORD_CHARACTER as WORD_CHARACTER, blank_between as blank_between
from .scripts import direction_of_text as direction_of_text
from .scripts import is_word_border as is_word_border
from .scripts import joined as joined, letters as letters, script as script
from .scripts import scripts_of_characters as scripts_of_characters
from .scripts import scripts_of_text as scripts_of_text, word_spans as word_spans, words as words
from .affixes import ARABIC_ARTICLE as ARABIC_ARTICLE
from .affixes import (
    is_part_of_compound as is_part_of_compound,
    may_begin as may_begin,
    may_end as may_end,
)
from .affixes import without_particles as without_particles, without_prefixes as without_prefixes
from .affixes import without_vowel_points as without_vowel_points
from .codes import did_you_mean as did_you_mean, is_language as is_language
from .codes import language_name as language_name, match_language as match_language
from .affixes import ARABIC_PREFIX as ARABIC_PREFIX, HEBREW_PREFIX as HEBREW_PREFIX
from .affixes import before_pronouns as before_pronouns
from .spelling import comparable as comparable
from .codes import language_tag as language_tag, native_name as native_name
from .codes import script_name as script_name, subtags as subtags
from .codes import usual_subtags as usual_subtags, with_code as with_code
from .codes import without_region as without_region
from .tab_separated import Row as Row
from .tags import BETWEEN as BETWEEN, BLOCKS as BLOCKS, INLINE as INLINE, SEPARATORS as SEPARATORS
from .tags import AMBIGUOUS as AMBIGUOUS, separates_words as separates_words
from .tokenizers import CONTINUES as CONTINUES, ESCAPE as ESCAPE, META as META, SYMBOLS as SYMBOLS
from .blocks import BLOCK_PAIRS as BLOCK_PAIRS, PairBlock as PairBlock, pair_blocks as pair_blocks
from .blocks import (
    pairs_of_block as pairs_of_block,
    read_blocks as read_blocks,
    read_files as read_files,
)
from .normalization import (
    FOLDINGS as FOLDINGS,
    INVISIBLE as INVISIBLE,
    NORMALIZATIONS as NORMALIZATIONS,
)
from .normalization import PRESENTATION_FORMS as PRESENTATION_FORMS
from .normalization import SOURCE as SOURCE, TARGET as TARGET, Normalization as Normalization
from .normalization import canonical as canonical, clusters as clusters, compatible as compatible
from .normalization import folded as folded, origins as origins, single_blanks as single_blanks
from .tokenizers import SentencePieceTokenizer as SentencePieceTokenizer, Tokenizer as Tokenizer
from .tokenizers import OF_WORDPIECE as OF_WORDPIECE, WordPieceTokenizer as WordPieceTokenizer
from .tokenizers import clean as clean, escaped as escaped, load_tokenizer as load_tokenizer
from .tokenizers import read_tokenizer as read_tokenizer, train_tokenizer as train_tokenizer
from .marian import MARIAN_SYMBOLS as MARIAN_SYMBOLS
from .tokenizers import MARIAN_KEY as MARIAN_KEY
from .marian import MarianTokenizer as MarianTokenizer
