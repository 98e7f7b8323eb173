from .files import COMPRESSIONS as COMPRESSIONS, LINE_BYTES as LINE_BYTES, TOO_LONG as TOO_LONG
from .files import MalformedLine as MalformedLine, Pair as Pair, decode as decode, decoded as decoded
from .files import is_table as is_table, is_text as is_text, not_parallel as not_parallel, open_binary as open_binary
from .files import open_text as open_text, parallel as parallel, problem_of as problem_of, raw_lines as raw_lines
from .files import read_files as read_files, read_lines as read_lines, read_texts as read_texts, reading as reading
from .files import resolve as resolve, texts_of as texts_of, without_end as without_end
from .filters import CHARACTERS_OF_A_WORD as CHARACTERS_OF_A_WORD, WITHOUT_BLANKS as WITHOUT_BLANKS, letters as letters
from .filters import reason_to_drop as reason_to_drop, words as words
from .languages import language_name as language_name, language_of_file as language_of_file, script as script
from .languages import scripts_of_characters as scripts_of_characters, scripts_of_language as scripts_of_language
from .languages import scripts_of_text as scripts_of_text, split_sentences as split_sentences
from .tokenizers import CONTINUES as CONTINUES, ESCAPE as ESCAPE, META as META
from .tokenizers import SOURCE as SOURCE, SYMBOLS as SYMBOLS, TARGET as TARGET
from .tokenizers import SentencePieceTokenizer as SentencePieceTokenizer
from .tokenizers import Tokenizer as Tokenizer, WordPieceTokenizer as WordPieceTokenizer, clean as clean
from .tokenizers import escaped as escaped, load_tokenizer as load_tokenizer
from .tokenizers import nfkc as nfkc, read_tokenizer as read_tokenizer, single_blanks as single_blanks
from .vocabulary import KEPT_LETTERS as KEPT_LETTERS, Encode as Encode, fast_encode as fast_encode, parsed as parsed
from .vocabulary import train_tokenizer as train_tokenizer, vocabulary_kind as vocabulary_kind
