"""The head of the page: the run's name, its state, and the numbers one asks for first."""

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


def bleu_fact(run: Run) -> Markup:
    """Validation BLEU: the model card's with its signature, else the last one that training logged."""
    found = re.fullmatch(r"validation BLEU ([\d.]+) on ([\d,]+) sentences, `(.+)`", run.card.get("Quality", ""))
    if run.model and found:
        notes = (f"averaged model, {found[2]} sentences", signature(found[3]))
        return fact("Validation BLEU", found[1], *notes)
    logged = series(run.rows, "valid_bleu")
    if not logged:
        return Markup()
    return fact("Validation BLEU", f"{logged[-1][1]:.2f}", f"at update {logged[-1][0]:,}, in training")


def summary(content: Content) -> Markup:
    """The numbers one asks for first."""
    run, facts, state = content.run, content.facts, content.run.state(content.now.timestamp())
    to_go = run.updates - run.update
    facts_shown = [fact("Update", f"{run.update:,}", f"of {run.updates:,}")]
    losses = [p for p in series(run.rows, "valid_loss") if p[1] == p[1]]
    if losses:
        step, loss = min(losses, key=lambda point: point[1])
        perplexity = dict(series(run.rows, "valid_perplexity")).get(step)
        beside = f"perplexity {number(perplexity)}, " if perplexity else ""
        facts_shown.append(fact("Best validation loss", f"{loss:.3f}", f"{beside}at update {step:,}"))
    facts_shown.append(bleu_fact(run))
    if content.parameters:
        model = run.config.get("model", {})
        facts_shown.append(fact("Parameters", in_short(content.parameters), f"model={model.get('name', '?')}"))
    seconds = last(run.rows, "seconds")
    if seconds:
        left = f"about {duration(seconds * to_go / max(run.update, 1))} to go" if state == "running" and to_go else ""
        facts_shown.append(fact("Training time", duration(seconds), left, facts and facts.devices))
    if facts and facts.tokens:
        late = f"at update {facts.updates:,}" if facts.updates != run.update else ""
        facts_shown.append(fact("Target tokens", in_short(facts.tokens), late))
    cost, flops = last(run.rows, "cost"), last(run.rows, "flops")
    if cost or flops:
        model = f"the model's own {number(flops)}" if cost and flops else "the model's own"
        notes = ("time × devices × sustained FLOP/s", model if flops else "") if cost else (model,)  # noqa: RUF001
        facts_shown.append(fact("Cost in FLOPs", number(cost or flops or 0), *notes))
    return tag("dl", *facts_shown, class_="facts")


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
