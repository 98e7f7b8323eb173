"""`nmt translate`: a stream of lines to a stream of translations."""

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.status import Status

from nmt.config import TranslateConfig
from nmt.decoding.devices import DeviceTranslator
from nmt.decoding.load import load_translator
from nmt.decoding.translator import Translation, Translator
from nmt.errors import NMTError
from nmt.text.files import BOM


def warn(words: str) -> None:
    print(f"nmt: {words}", file=sys.stderr)


def input_lines(file: Iterable[bytes], first: int = 1, notice: Callable[[str], None] = warn) -> Iterator[str]:
    """Lines as they arrive, without LF or CRLF and without a byte order mark; only LF separates lines.

    `first` is the first one's number. Invalid UTF-8 is replaced, with a notice: a long job is not to die of a byte.
    """
    for number, line in enumerate(file, first):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        begin = len(BOM) if number == 1 and line.startswith(BOM) else 0
        try:
            yield line[begin:].decode()
        except UnicodeDecodeError as error:
            notice(f"line {number}: invalid UTF-8 at byte {begin + error.start + 1}, replaced")
            yield line[begin:].decode(errors="replace")


def remembered(lines: Iterator[str], read: deque[str]) -> Iterator[str]:
    """The lines, each of which is put into `read` too."""
    for line in lines:
        read.append(line)
        yield line


def render(number: int, source: str, translations: list[Translation], format: str) -> str:
    """The output for input line `number`, counted from 1: one line, or with tsv one for each translation."""
    if format == "text":
        return translations[0].text + "\n"
    if format == "tsv":
        # A translation holds no tab: white space in it is single blanks.
        return "".join(f"{number}\t{t.score:.4f}\t{t.text}\n" for t in translations)
    records = [{"text": t.text, "score": t.score, "log_probability": t.log_probability} for t in translations]
    for record, translation in zip(records, translations, strict=True):
        record |= vars(translation.details) if translation.details else {}
    line = {"line": number, "source": source, "translations": records}
    if translations[0].copied:
        line["copied"] = translations[0].copied
    return json.dumps(line, ensure_ascii=False) + "\n"


def is_input(config: TranslateConfig) -> bool:
    """Whether the output file is the input, by whatever name; a terminal may be both."""
    output = Path(config.output)
    if not output.is_file():
        return False
    if config.input == "-":
        return os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
    return Path(config.input).exists() and output.samefile(config.input)


def open_files(config: TranslateConfig, stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Input and output; `stack` closes those that are files. NMTError where one cannot be opened."""
    if config.input == "-" and sys.stdin is None:
        raise NMTError("standard input is closed: name a file with input=FILE")
    if config.output == "-" and sys.stdout is None:
        raise NMTError("standard output is closed: name a file with output=FILE")
    if config.output != "-" and is_input(config):
        raise NMTError(f"output={config.output} is the input, which would be lost: name another file")
    try:
        if config.input == "-":
            # A reader of its own on standard input: a thread waits in it, and sys.stdin is closed when Python ends.
            source: BinaryIO = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
        else:
            source = stack.enter_context(Path(config.input).open("rb"))  # noqa: SIM115
        if config.output == "-":
            return source, sys.stdout.buffer
        return source, stack.enter_context(Path(config.output).open("wb"))
    except OSError as error:
        raise NMTError(f"{error.filename}: {error.strerror}") from error


def console(target: BinaryIO) -> Console:
    """Where progress is shown: on standard error, unless the translations go to the terminal themselves."""
    return Console(stderr=True, quiet=target.isatty())


def open_translator(config: TranslateConfig, stack: ExitStack) -> Translator | DeviceTranslator:
    """The translator for one device or several; `stack` ends the processes of several."""
    if config.devices == 1:
        return load_translator(config, warn)
    return stack.enter_context(DeviceTranslator(config, warn))


def translate(config: TranslateConfig) -> None:
    """Translate `config.input` to `config.output`, in order, as lines arrive."""
    with ExitStack() as stack:
        translator = open_translator(config, stack)
        source, target = open_files(config, stack)
        if source.isatty():
            print("nmt: type lines to translate; Ctrl-D ends", file=sys.stderr)
        status = stack.enter_context(Status("translating", console=console(target)))
        read: deque[str] = deque()
        stream = translator.stream(remembered(input_lines(source), read), config.buffer)
        for number, translations in enumerate(stream, 1):
            target.write(render(number, read.popleft(), translations, config.format).encode())
            target.flush()
            status.update(f"translated {number:,} lines")
