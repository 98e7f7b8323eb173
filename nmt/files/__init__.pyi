from .description import (
    find_model_directory as find_model_directory,
    tokenizer_settings as tokenizer_settings,
)
from .description import (
    ModelDescription as ModelDescription,
    Shapes as Shapes,
    read_description as read_description,
)
from .description import (
    check_direction as check_direction,
    duration as duration,
    weights_in_words as weights_in_words,
)
from .description import (
    MODEL_FILES as MODEL_FILES,
    expected_search as expected_search,
    stored_shapes as stored_shapes,
)
from .description import RARE_LETTERS as RARE_LETTERS
from .description import (
    EMBEDDINGS as EMBEDDINGS,
    architecture as architecture,
    model_card as model_card,
    tied as tied,
)
from .description import is_parser as is_parser, positions as positions, within as within
from .disk import (
    check_replaceable as check_replaceable,
    load_plain as load_plain,
    remove_leftovers as remove_leftovers,
)
from .disk import (
    check_members as check_members,
    check_regular as check_regular,
    temporary_name as temporary_name,
)
from .disk import (
    cache_folder as cache_folder,
    check_version as check_version,
    read_mapping as read_mapping,
)
from .disk import (
    cannot_write as cannot_write,
    cell as cell,
    only_process as only_process,
    whole_folder as whole_folder,
)
from .disk import (
    locked_file as locked_file,
    parse_json as parse_json,
    parse_yaml as parse_yaml,
    printable as printable,
)
from .disk import (
    read_bytes as read_bytes,
    read_text as read_text,
    whole_file as whole_file,
    write_file as write_file,
)
from .disk import (
    LARGE as LARGE,
    SMALL as SMALL,
    block as block,
    code as code,
    plain as plain,
    sha256 as sha256,
)
from .disk import LOCK as LOCK, in_use as in_use, sync as sync
from .written import (
    foreign_files as foreign_files,
    kind_of_folder as kind_of_folder,
    markers as markers,
)
