from .description import EMBEDDINGS as EMBEDDINGS, MODEL_FILES as MODEL_FILES, ModelDescription as ModelDescription
from .description import Shapes as Shapes, architecture as architecture, check_direction as check_direction
from .description import duration as duration, expected_search as expected_search
from .description import find_model_directory as find_model_directory, is_parser as is_parser, model_card as model_card
from .description import positions as positions, read_description as read_description, stored_shapes as stored_shapes
from .description import tied as tied, tokenizer_settings as tokenizer_settings, weights_in_words as weights_in_words
from .description import within as within
from .disk import LARGE as LARGE, SMALL as SMALL, block as block, cell as cell, check_members as check_members
from .disk import check_regular as check_regular, check_version as check_version, code as code
from .disk import load_plain as load_plain, parse_json as parse_json, parse_yaml as parse_yaml, plain as plain
from .disk import printable as printable, read_bytes as read_bytes, read_mapping as read_mapping
from .disk import read_text as read_text, sha256 as sha256
from .disk import cache_folder as cache_folder, cannot_write as cannot_write, LOCK as LOCK
from .disk import check_replaceable as check_replaceable, locked_file as locked_file, only_process as only_process
from .disk import remove_leftovers as remove_leftovers, sync as sync, temporary_name as temporary_name
from .disk import whole_file as whole_file, whole_folder as whole_folder, write_file as write_file
