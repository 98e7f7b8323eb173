"""Exchange two folders in one step of the file system, which Python's library does not offer.

Linux: renameat2 with RENAME_EXCHANGE (https://man7.org/linux/man-pages/man2/rename.2.html).
macOS: renamex_np with RENAME_SWAP.
"""

import ctypes
import errno
import os
import sys
from pathlib import Path

from nmt.files import cannot_write, sync

CURRENT_FOLDER = -100
"""AT_FDCWD: relative paths begin at the working directory."""
RENAME_EXCHANGE = 2
RENAME_SWAP = 2
NOT_SUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders of a file system; False if the system cannot do that in one step.

    At each moment, both names lead to a whole folder. Raises NMTError if the folders cannot be
    renamed.
    """
    library = ctypes.CDLL(None, use_errno=True)
    first = os.fsencode(one)
    second = os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(CURRENT_FOLDER, first, CURRENT_FOLDER, second, RENAME_EXCHANGE)
    elif sys.platform == "darwin":
        failed = library.renamex_np(first, second, RENAME_SWAP)
    else:
        return False
    if failed:
        number = ctypes.get_errno()
        if number in NOT_SUPPORTED:
            return False
        raise cannot_write(other, OSError(number, os.strerror(number)))
    sync(one.parent)
    sync(other.parent)
    return True
