"""The head of the page: the run's name, its state, and the numbers one asks for first."""

import math
import re
from datetime import datetime

from nmt.report.content import Content, duration, in_short, signature
from nmt.report.markup import Markup, tag
from nmt.report.run import Run, last, series
from nmt.report.scales import number


def fact(label: str, value: object, *notes: object) -> Markup:
    """A number of the header, with what it needs to be understood."""
    said = [tag("div", note, class_="note") for note in notes if note]
    return tag("div", tag("dt", label), tag("dd", tag("div", value, class_="value"), *said))


def score_fact(run: Run) -> Markup:
    """Validation BLEU, or F1: the model card's with its signature, else the last one that training logged."""
    found = re.fullmatch(r"validation (.+?) ([\d.]+) on ([\d,]+) sentences, `(.+)`", run.card.get("Quality", ""))
    if run.model and found:
        notes = (f"averaged model, {found[3]} sentences", signature(found[4]))
        return fact(f"Validation {found[1]}", found[2], *notes)
    for name, column in (("BLEU", "valid_bleu"), ("F1", "valid_f1")):
        if logged := series(run.rows, column):
            step, value = logged[-1]
            return fact(f"Validation {name}", f"{value:.2f}", f"at update {step:,}, in training")
    return Markup()


def loss_fact(run: Run) -> Markup:
    """The lowest validation loss; a run that has diverged may have none."""
    losses = [point for point in series(run.rows, "valid_loss") if math.isfinite(point[1])]
    if not losses:
        return Markup()
    step, loss = min(losses, key=lambda point: point[1])
    perplexity = dict(series(run.rows, "valid_perplexity")).get(step)
    beside = f"perplexity {number(perplexity)}, " if perplexity else ""
    return fact("Best validation loss", f"{loss:.3f}", f"{beside}at update {step:,}")


def time_fact(content: Content) -> Markup:
    """Training time over all restarts, on what, and for a run that goes on how much is left."""
    run, seconds = content.run, last(content.run.rows, "seconds")
    if seconds is None:
        return Markup()
    left = seconds * (run.updates - run.update) / max(run.update, 1)
    running = run.state(content.now.timestamp()) == "running" and left > 0
    devices = content.facts.devices if content.facts else None
    return fact("Training time", duration(seconds), f"about {duration(left)} to go" if running else "", devices)


def cost_fact(run: Run) -> Markup:
    """The cost as the paper estimates it, and the model's own operations, as far as they are logged."""
    cost, flops = last(run.rows, "cost"), last(run.rows, "flops")
    if cost:
        own = f"the model's own {number(flops)}" if flops else ""
        return fact("Cost in FLOPs", number(cost), "time × devices × sustained FLOP/s", own)  # noqa: RUF001
    return fact("Cost in FLOPs", number(flops), "the model's own") if flops else Markup()


def summary(content: Content) -> Markup:
    """The numbers one asks for first."""
    run, facts = content.run, content.facts
    shown = [fact("Update", f"{run.update:,}", f"of {run.updates:,}"), loss_fact(run), score_fact(run)]
    if content.parameters:
        name = run.config.get("model", {}).get("name", "?")
        shown.append(fact("Parameters", in_short(content.parameters), f"model={name}"))
    shown.append(time_fact(content))
    if facts and facts.tokens:
        late = f"at update {facts.updates:,}" if facts.updates != run.update else ""
        shown.append(fact("Target tokens", in_short(facts.tokens), late))
    return tag("dl", *shown, cost_fact(run), class_="facts")


def heading(content: Content) -> Markup:
    """The run's name, its languages and its state."""
    run = content.run
    data = run.config.get("data", {})
    name = run.config.get("name") or run.folder.resolve().name
    state = run.state(content.now.timestamp())
    logged = datetime.fromtimestamp(run.written).astimezone()
    words = f"{state}, last report {logged:%Y-%m-%d %H:%M}" if state != "finished" else state
    languages = f"{data.get('source', '?')} → {data.get('target', '?')}"
    line = [tag("span", languages), tag("span", data.get("name")), tag("span", words, class_=f"state {state}")]
    return tag("header", tag("h1", name), tag("p", *line, class_="line"), summary(content))
