"""`nmt report`, `attention`, `compare`, `cite` and `verify`: their checks and output.

Modules that import torch or sacreBLEU are imported by the command that needs them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from nmt import files, training
from nmt.commands import LIKE_A_PATH, no_such_path, one_run, talker
from nmt.config import Command, NMTError, exists
from nmt.plugins.results.checks import ANOTHER, DIFFERS, MISSING, RESULT_WIDTH
from nmt.plugins.results.options import (
    AttentionConfig,
    CiteConfig,
    CompareConfig,
    ReportConfig,
    VerifyConfig,
    check_output,
)


def metrics_of(folder: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv in a run; NMTError if it has none."""
    rows = training.read_metrics(folder)
    if not rows:
        advice = "try again after training has logged a loss"
        raise NMTError(f"run={folder}: metrics.csv has no rows yet; {advice}")
    return rows


def report(config: ReportConfig) -> None:
    folder = Path(config.run)
    # Checks that are cheap come before those that import torch.
    if not (folder / "config.yaml").is_file():
        raise NMTError(f"run={folder}: not a training run of `nmt train` (no config.yaml)")
    # The report is written into the run, and nmt never writes through a link.
    training.check_no_links(folder)
    metrics_of(folder)  # fails before the import below, which takes seconds
    output = check_output(Path(config.output or folder / "report.html"), "report.html")
    from nmt.plugins.results.training_page import training_page

    files.write_file(output, training_page(config, talker()))
    print(output)


def attention(config: AttentionConfig) -> None:
    output = check_output(Path(config.output), "attention.html")
    with talker().status("loading") as status:
        from nmt.plugins.results.attention_page import attention_page

        page = attention_page(config, status.update)
    files.write_file(output, page)
    print(output)


def compare(config: CompareConfig) -> int:
    """Print the numbers, write the page, and return the exit code."""
    from nmt.plugins.results.comparison import compared
    from nmt.plugins.results.comparison_text import as_text
    from nmt.plugins.results.significance import FEWEST_LINES
    from nmt.plugins.results.systems import read_systems

    console = talker()
    systems = read_systems(config.systems)
    tree = compared(systems, config.source, config.reference, config, console)
    if config.format == "json":
        print(json.dumps(tree, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(as_text(tree))
    if config.output:
        console.print(f"the page is {config.output}")
    # After the output, so that a CI job that fails still shows the numbers.
    if config.fail_if and tree["first_is_worse"]:
        worse = f"{systems[0].name} is significantly worse than {systems[1].name}"
        console.print(f"nmt: {worse} (fail_if=worse)")
        return 1
    # Otherwise, a job with a short test set would pass forever without a sign.
    if config.fail_if and tree["lines"] < FEWEST_LINES:
        console.print(f"nmt: fail_if=worse cannot fail with fewer than {FEWEST_LINES} lines")
    return 0


def run_cite(config: CiteConfig) -> None:
    from nmt.plugins.results.citation import SOFTWARE, cite

    output, sha256, sentence = cite(config, talker())
    print(f"{output}\nSHA-256 {sha256}\n\n{sentence}\n\n{SOFTWARE}")


def run_verify(config: VerifyConfig) -> int:
    """Print every check.

    Return 1 if something differs or is missing, and 3 if bits differ in another environment, which
    proves nothing.
    """
    if config.bundle:
        from nmt.plugins.results.verify import verify

        checks = verify(config, talker())
    else:
        from nmt.plugins.results.retraining import train_again

        checks = train_again(config, talker())
    results = set()
    for result, what, detail in checks:
        # Names and values come from an untrusted bundle, so they may contain control characters.
        # Flushed, because the next check may take long.
        print(files.printable(f"{result:{RESULT_WIDTH}}  {what}: {detail}"), flush=True)
        results.add(result)
    # A difference in the same environment outweighs one in another environment.
    if DIFFERS in results or MISSING in results:
        return 1
    return 3 if ANOTHER in results else 0


def sentence_and_run(words: list[str]) -> dict[str, str]:
    """Find the sentence and the run; NMTError for two of either.

    An existing folder or a name such as hub:ORG/NAME is the run, and any other word is the
    sentence.
    """
    values: dict[str, str] = {}
    for word in words:
        # A sentence can be longer than a path may be, on which `is_dir` alone raises OSError.
        is_run = files.is_prefixed(word) or (exists(word) and Path(word).is_dir())
        key = "run" if is_run else "sentence"
        if key in values:
            example = "`nmt attention 'A SENTENCE' runs/mine`"
            missing = [path for path in words if LIKE_A_PATH.search(path) and not exists(path)]
            if missing:
                raise no_such_path(missing[0], f"pass a run, as in {example}")
            raise NMTError(f"{words[-1]}: pass one sentence and one run, as in {example}")
        values[key] = word
    return values


def bundle_or_run(words: list[str]) -> dict[str, Any]:
    if len(words) > 1:
        problem = f"this command takes one bundle or run, but {words[0]} is also given"
        raise NMTError(f"{words[-1]}: {problem}")
    [word] = words
    # An unpacked bundle is a folder, too.
    is_run = (Path(word) / "checkpoints").is_dir()
    return {"run": word} if is_run else {"bundle": word}


def system_list(words: list[str]) -> dict[str, Any]:
    return {"systems": words}


REPORT = Command(
    name="report",
    config=ReportConfig,
    run=report,
    words=one_run,
    usage="[RUN]",
    examples=("runs/corpus-30min", "runs/corpus-30min split=test sentences=null"),
    groups={"decode": "paper"},
    memory=(
        "pass device=cpu, because training may have filled the device, "
        "or sentences=0 to translate nothing"
    ),
)
ATTENTION = Command(
    name="attention",
    config=AttentionConfig,
    run=attention,
    words=sentence_and_run,
    usage="'A SENTENCE' [RUN]",
    examples=(
        "'A dog runs across the grass.'",
        "'A dog runs.' runs/corpus-30min target='Ein Hund rennt.'",
    ),
    groups={"decode": "paper"},
)
COMPARE = Command(
    name="compare",
    config=CompareConfig,
    run=compare,
    words=system_list,
    usage="SYSTEM SYSTEM...",
    examples=(
        "base=runs/old tuned=runs/new",
        "new.de old.de reference=corpus/test.de source=corpus/test.en",
    ),
    groups={"decode": "paper"},
    options={"--json": "format=json"},
    entries="systems",
    memory="pass lower resamples, trials or decode.batch_tokens",
)
CITE = Command(
    name="cite",
    config=CiteConfig,
    run=run_cite,
    words=one_run,
    usage="[RUN]",
    examples=(
        "runs/corpus-30min",
        "runs/corpus-30min source=corpus/test.en reference=corpus/test.de",
    ),
    groups={"decode": "paper"},
    memory="pass a lower decode.batch_tokens, or device=cpu",
)
VERIFY = Command(
    name="verify",
    config=VerifyConfig,
    run=run_verify,
    words=bundle_or_run,
    usage="[BUNDLE or RUN]",
    examples=("citation-test.zip reference=test.de", "runs/quickstart step=5520"),
    memory="pass device=cpu, or omit run",
)
