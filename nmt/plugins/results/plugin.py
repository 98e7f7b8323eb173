"""Pages about runs and attention, comparisons of systems, and bundles of scores to verify."""

from nmt.extensions import Add, CommandEntry, PythonEntry

SUMMARIES = {
    "report": "Write a page about a training run: curves, translations, corpus, configuration.",
    "attention": "Draw what each head of a model attends to in a sentence and its translation.",
    "compare": "Compare systems on a test set: significance, cost, and where they differ.",
    "cite": "Write a bundle of translations and scores that others can verify.",
    "verify": (
        "Check a bundle that `nmt cite` wrote, or train a run again and compare its weights."
    ),
}


def register(add: Add) -> None:
    for command, summary in SUMMARIES.items():
        # Each command is a constant in capitals, which is imported only when its command runs.
        path = f"nmt.plugins.results.commands:{command.upper()}"
        add(CommandEntry(command, path, summary=summary))
    add(PythonEntry("compare", "nmt.plugins.results.comparison:compare"))
