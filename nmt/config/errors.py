"""The errors of nmt, which most users of nmt.config need, too."""

from nmt.errors import (
    IF_LATIN_1 as IF_LATIN_1,
    NMTError as NMTError,
    SameForAll as SameForAll,
    SettingError as SettingError,
    enough_memory_or as enough_memory_or,
    how_to_install as how_to_install,
    is_out_of_memory as is_out_of_memory,
    one_line as one_line,
    require as require,
)
