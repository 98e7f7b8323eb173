from .archive import check_members as check_members, load_plain as load_plain
from .cache import cache_folder as cache_folder
from .card import (
    certified as certified,
    duration as duration,
    imported_card as imported_card,
    model_card as model_card,
    weights_in_words as weights_in_words,
)
from .description import (
    EXPORTED as EXPORTED,
    ModelDescription as ModelDescription,
    architecture as architecture,
    check_direction as check_direction,
    expected_search as expected_search,
    find_model_directory as find_model_directory,
    is_exported as is_exported,
    is_parser as is_parser,
    positions as positions,
    read_description as read_description,
    read_tokenizer as read_tokenizer,
    tokenizer_settings as tokenizer_settings,
    within as within,
)
from .foreign import (
    LARGE as LARGE,
    SMALL as SMALL,
    check_regular as check_regular,
    check_tree as check_tree,
    check_version as check_version,
    opened as opened,
    parse_json as parse_json,
    parse_yaml as parse_yaml,
    read_bytes as read_bytes,
    read_mapping as read_mapping,
    read_text as read_text,
    read_tree as read_tree,
    sha256 as sha256,
)
from .lock import locked_file as locked_file, only_process as only_process
from .markdown import plain as plain, printable as printable
from .stored import (
    EMBEDDINGS as EMBEDDINGS,
    Shapes as Shapes,
    check_positions as check_positions,
    stored_as as stored_as,
    stored_shapes as stored_shapes,
    tied as tied,
)
from .weights import (
    check_ours as check_ours,
    check_shapes as check_shapes,
    count_parameters as count_parameters,
    described as described,
    load_model as load_model,
    write_model_directory as write_model_directory,
)
from .whole import (
    cannot_write as cannot_write,
    check_replaceable as check_replaceable,
    remove_leftovers as remove_leftovers,
    sync as sync,
    whole_file as whole_file,
    whole_folder as whole_folder,
    write_file as write_file,
    write_zip as write_zip,
)
