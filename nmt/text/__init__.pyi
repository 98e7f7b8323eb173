from .files import (
    BOM as BOM,
    COMPRESSIONS as COMPRESSIONS,
    LINE_BYTES as LINE_BYTES,
    MAGIC as MAGIC,
    TOO_LONG as TOO_LONG,
    MalformedLine as MalformedLine,
    Pair as Pair,
    decode as decode,
    decoded as decoded,
    is_table as is_table,
    is_text as is_text,
    not_parallel as not_parallel,
    open_binary as open_binary,
    open_text as open_text,
    parallel as parallel,
    problem_of as problem_of,
    raw_lines as raw_lines,
    read_files as read_files,
    read_lines as read_lines,
    read_texts as read_texts,
    reading as reading,
    resolve as resolve,
    texts_of as texts_of,
    without_end as without_end,
)
from .filters import (
    CHARACTERS_OF_A_WORD as CHARACTERS_OF_A_WORD,
    WITHOUT_BLANKS as WITHOUT_BLANKS,
    large_losses as large_losses,
    letters as letters,
    reason_to_drop as reason_to_drop,
    words as words,
)
from .items import (
    MEASURE as MEASURE,
    USUAL as USUAL,
    Finder as Finder,
    Items as Items,
    Stretch as Stretch,
    form as form,
    is_counted as is_counted,
    replaced as replaced,
    same_directives as same_directives,
)
from .languages import language_name as language_name
from .numerals import is_number_lost as is_number_lost
from .remembered_words import Encode as Encode, fast_encode as fast_encode
from .scripts import (
    language_of_file as language_of_file,
    script as script,
    scripts_of_characters as scripts_of_characters,
    scripts_of_language as scripts_of_language,
    scripts_of_text as scripts_of_text,
)
from .sentences import split_sentences as split_sentences
from .tokenizers import (
    CONTINUES as CONTINUES,
    ESCAPE as ESCAPE,
    MARIAN_SYMBOLS as MARIAN_SYMBOLS,
    META as META,
    SOURCE as SOURCE,
    SYMBOLS as SYMBOLS,
    TAG as TAG,
    TARGET as TARGET,
    MarianTokenizer as MarianTokenizer,
    SentencePieceTokenizer as SentencePieceTokenizer,
    Tokenizer as Tokenizer,
    WordPieceTokenizer as WordPieceTokenizer,
    clean as clean,
    escaped as escaped,
    load_tokenizer as load_tokenizer,
    marian_tokenizer as marian_tokenizer,
    nfkc as nfkc,
)
from .vocabulary import train_tokenizer as train_tokenizer
