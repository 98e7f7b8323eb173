"""`nmt report`, `attention`, `compare`, `cite` and `verify`: what they check first, print and write."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from nmt.commands import one_run, talker
from nmt.config import Command, NMTError, Option, exists, require
from nmt.plugins.results.options import AttentionConfig, CiteConfig, CompareConfig, ReportConfig, VerifyConfig


def check_output(output: Path, name: str) -> Path:
    """Return `output` if it can be written; otherwise raise NMTError, before any work is done."""
    require(not output.is_dir(), f"output={output}: is a folder; name a file, such as output={output / name}")
    try:
        with TemporaryFile(dir=output.parent):
            return output
    except OSError as error:
        raise NMTError(f"output={output}: cannot be written ({error.strerror}); choose another path") from error


def report(config: ReportConfig) -> None:
    from nmt.files import write_file
    from nmt.training import check_no_links

    folder, hint = Path(config.run), "not a training run (no config.yaml); pass a folder that `nmt train` wrote"
    if config.run == "runs/latest":
        hint = "train a model first: `nmt preprocess`, then `nmt train`"
    require((folder / "config.yaml").is_file(), f"run={folder}: {hint}")
    check_no_links(folder)
    output, console = check_output(Path(config.output or folder / "report.html"), "report.html"), talker()
    with console.status("loading"):
        from nmt.plugins.results.training_page import open_run, training_page, translate_held_out

        run = open_run(folder, config.prepared)
    write_file(output, training_page(run, *translate_held_out(run, config, console)))
    print(output)


def attention(config: AttentionConfig) -> None:
    from nmt.files import write_file
    from nmt.plugins.results.attention_page import attention_page

    output = check_output(Path(config.output), "attention.html")
    write_file(output, attention_page(config))
    print(output)


def compare(config: CompareConfig) -> int:
    """Print the numbers, write the page, and return the exit code."""
    from nmt.plugins.results.systems import read_systems
    from nmt.plugins.results.test_set import read_test_set

    console, systems = talker(), read_systems(config.systems)
    if config.output:
        check_output(Path(config.output), "compare.html")
    test = read_test_set(systems[0].seeds[0].path, config.source, config.reference, config.prepared)

    from nmt.plugins.results.comparison_page import as_text, compared
    from nmt.plugins.results.significance import FEWEST_LINES

    tree, details = compared(systems, test, config, console)
    if config.format == "json" and details:
        print(json.dumps({**tree, "buckets": details.rows}, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(as_text(tree))
    if config.output:
        console.print(f"the page is {config.output}")
    if config.fail_if and tree["first_is_worse"]:
        console.print(f"nmt: {systems[0].name} is significantly worse than {systems[1].name} (fail_if=worse)")
        return 1
    if config.fail_if and len(test.references) < FEWEST_LINES:
        console.print(f"nmt: fail_if=worse cannot fail with fewer than {FEWEST_LINES} lines")
    return 0


def run_cite(config: CiteConfig) -> None:
    from nmt.plugins.results.cite import SOFTWARE, cite

    output, sha256, sentence = cite(config, talker())
    print(f"{output}\nSHA-256 {sha256}\n\n{sentence}\n\n{SOFTWARE}")


def run_verify(config: VerifyConfig) -> int:
    """Print every check; return 1 if something differs or is missing."""
    from nmt.files import printable
    from nmt.plugins.results.verify import DIFFERS, MISSING, verify

    failed = False
    for result, what, detail in verify(config, talker()):
        print(printable(f"{result:9}  {what}: {detail}"), flush=True)
        failed |= result in (DIFFERS, MISSING)
    return int(failed)


def sentence_and_run(words: list[str]) -> dict[str, str]:
    """An existing folder is the run, and any other word is the sentence; NMTError for two of either."""
    keys = ["run" if exists(word) and Path(word).is_dir() else "sentence" for word in words]
    if len(keys) != len(set(keys)):
        raise NMTError(f"{words[-1]}: pass one sentence and one run, as in `nmt attention 'A SENTENCE' runs/mine`")
    return dict(zip(keys, words, strict=True))


def one_bundle(words: list[str]) -> dict[str, Any]:
    require(len(words) == 1, f"{words[-1]}: this command takes one bundle; {words[0]} is given too")
    return {"bundle": words[0]}


REPORT = Command(
    *("report", ReportConfig, report, one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min", "runs/corpus-30min split=test sentences=null"),
    groups={"decode": "paper"},
    memory="pass device=cpu, because training may have filled the device, or sentences=0 to translate nothing",
)
ATTENTION = Command(
    *("attention", AttentionConfig, attention, sentence_and_run),
    usage="'A SENTENCE' [RUN]",
    examples=("'A dog runs across the grass.'", "'A dog runs.' runs/corpus-30min target='Ein Hund rennt.'"),
    groups={"decode": "paper"},
)
COMPARE = Command(
    "compare",
    CompareConfig,
    compare,
    lambda words: {"systems": words},
    usage="SYSTEM SYSTEM...",
    examples=("runs/new runs/old", "new.de old.de reference=corpus/test.de source=corpus/test.en"),
    groups={"decode": "paper"},
    options={"--json": Option("Short for format=json.", override="format=json")},
    entries="systems",
    memory="pass lower resamples, trials or decode.batch_tokens",
)
CITE = Command(
    *("cite", CiteConfig, run_cite, one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min", "runs/corpus-30min source=corpus/test.en reference=corpus/test.de"),
    groups={"decode": "paper"},
    memory="pass a lower decode.batch_tokens, or device=cpu",
)
VERIFY = Command(
    *("verify", VerifyConfig, run_verify, one_bundle),
    usage="BUNDLE",
    examples=("citation-test.zip", "citation-test.zip reference=test.de"),
    memory="pass device=cpu, or omit run",
)
