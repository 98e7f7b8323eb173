"""Whether an input has changed, without reading it."""

import json
import time
from pathlib import Path

from nmt.files import SETTLED_NS, identity_of
from nmt.plugins.cluster import places
from nmt.plugins.cluster.inputs import InputFile

TAGS = frozenset({"ETag", "etag", "generation", "md5Hash", "VersionId"})
"""What remote file systems call that which changes with the content of a file."""
TIMES = frozenset({"LastModified", "last_modified", "updated"})


def version_of(file: InputFile) -> str:
    """The version of a file and of the one that is parallel to it; empty if one has none."""
    names = [file.path, file.second] if file.second else [file.path]
    versions = [version_of_file(name) for name in names]
    return "\n".join(versions) if all(versions) else ""


def version_of_file(name: str) -> str:
    """A text that changes with the content of a file; empty if there is no such text.

    Of local files: device, inode, size and times. A remote file needs a tag of its content.
    """
    with places.accessing(name):
        if not places.is_remote(name):
            identity = identity_of(Path(name))
            is_settled = identity.changed_ns < time.time_ns() - SETTLED_NS
            return json.dumps(identity) if is_settled else ""
        facts = places.current_facts(name)
    version = {key: str(facts[key]) for key in sorted(TAGS | TIMES) if facts.get(key)}
    return json.dumps(version) if TAGS & version.keys() else ""
