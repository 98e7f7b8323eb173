"""What a model on disk translates, and what tells it from the one that replaces it."""

from dataclasses import dataclass

from nmt.errors import NMTError
from nmt.files import find_model_directory, is_exported, is_parser
from nmt.translation import find_models, language_tag, languages

Files = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of each file of a model."""


@dataclass
class Directions:
    """The languages of a model."""

    source: str
    targets: dict[str, str]
    """The tag of each target language with a blank; empty for the only one."""

    @property
    def default(self) -> str | None:
        """A target language, for a model of several."""
        return next((target for target, tag in self.targets.items() if tag), None)


def files_of(run: str) -> Files:
    """What tells a model from the one that replaces it; NMTError where there is none."""
    folder = find_model_directory(run).resolve()
    found = [(path, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return tuple((str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in found)


def bytes_of(run: str) -> int:
    """About the memory that a loaded model takes: its files twice while they are read, and Python's libraries."""
    return 2 * sum(size for _, _, size, _ in files_of(run)) + 400 * 2**20


def read_directions(run: str, engine: str) -> Directions:
    """The directions of a model; NMTError where there is none that translates, or the engine cannot read it."""
    [folder], [description], tokenizer = find_models([run])
    if is_exported(folder) and engine != "ctranslate2":
        raise NMTError(f"run={run}: exported for another program; pass engine=ctranslate2")
    if is_parser(description):
        raise NMTError(f"run={run}: a parser; `nmt parse` uses it")
    tags = {language: language_tag(language, tokenizer) for language in languages(tokenizer)}
    return Directions(description.source, tags or {description.target: ""})
