// The words of the translation: which words of the source they translate, and what else could stand in their place.
import { element, listen, page } from "./elements.js";
import { attributesOf, question, spoken } from "./languages.js";
import { ask } from "./server.js";
import { differences, leadOf, spansIn, touching, wordsIn } from "./segments.js";

const SHOWN = 6, CONTEXT = 7; // alternatives, and words shown with each of them
const MARK = -1; // the index of a mark among the words of a line
const DOUBTFUL = 0.5; // the probability below which a line is marked
let lines = []; // of the source and the translation, see `rowOf`
let selected = 0; // the index of the line that the user selected last
let spans = [], open = null, asking = new AbortController(), chosen = () => {};

/** Call a function with the whole text whenever the user replaces a word. */
export function onChoice(listener) { chosen = listener; }

/** The index of the line that the user selected last, in the text or in its translation; 0 for a new text. */
export const selectedLine = () => selected;

/**
 * A line of the source, which begins at `start`, and its translation, `text`. `alignment` has pairs of
 * numbers of `sourceSpans` and `targetSpans`, which are stretches of these two; it is null if the
 * server gave none. So is `probability`, that the translation is good. `memory` is what the translation memory
 * has for the line. `corrected` is true if the translation is the user's. `taken` is the source of the similar entry
 * whose translation the user has chosen.
 */
function rowOf(source, start, text, details) {
  const { alignment = null, probability = null } = details;
  const sourceSpans = spansIn(source, details.source_words);
  const targetSpans = spansIn(text, details.target_words);
  const { memory, corrected } = details;
  return { source, start, text, alignment, probability, sourceSpans, targetSpans, memory, corrected, taken: "" };
}

/** A mark behind a line. Its sign is not text, so that it is never copied. */
function markOf(kind, sign, words, name = "i") {
  const mark = element(name, { className: `sign ${kind}`, title: words });
  for (const [key, value] of [["role", "img"], ["aria-label", words], ["data-sign", sign]]) mark.setAttribute(key, value);
  return mark;
}

const percent = (score) => `${Math.floor(100 * score)}%`;

/** The marks behind a line: that the user or the translation memory wrote it, or that it is probably not good. */
function marksOf(row) {
  const marks = [], { match, entries } = row.memory ?? {};
  if (row.corrected) marks.push(markOf("corrected", "✓", "Corrected by you."));
  if (match === "exact") marks.push(markOf("match", "TM", "From the translation memory."));
  if (match === "sentences") {
    const sources = entries.map(({ source }) => `“${source}”`).join(" ");
    marks.push(markOf("match part", "TM", `Partly from the translation memory: ${sources}`));
  }
  if (match === "fuzzy") marks.push(similarMark(row, entries[0]));
  if (row.taken) marks.push(markOf("doubt", "?", `Please check this line: it translates a similar text, “${row.taken}”.`));
  else if (row.probability !== null && row.probability < DOUBTFUL) {
    const likely = Math.round(100 * row.probability);
    marks.push(markOf("doubt", "?", `Please check this line: it is ${likely}% likely to be a good translation.`));
  }
  return marks;
}

/** The mark of a line with similar entries; it is reached like a word, and opens them. */
function similarMark(row, { source, score }) {
  const words = `The translation memory has a text that is ${percent(score)} similar: “${source}”. Select to see similar texts.`;
  const mark = Object.assign(markOf("match", percent(score), words, "span"), { row, index: MARK, numbers: new Set() });
  spans.push(mark);
  return mark;
}

/** Show a translation; `details` are the server's, one for each line of the source with text. */
export function showWords(source, text, details = []) {
  const remaining = [...details], sources = source.split("\n");
  const isSame = lines.map((row) => row.source).join("\n") === source;
  if (!isSame) selected = 0;
  let start = 0;
  lines = text.split("\n").map((line, index) => {
    const of = sources[index] ?? "", isBlank = leadOf(of).length === of.length;
    const row = rowOf(of, start, line, (isBlank ? null : remaining.shift()) ?? {});
    start += of.length + 1;
    return row;
  });
  draw();
}

function draw(line = -1, word = 0) {
  close(false);
  light([]);
  spans = [];
  page.translation.replaceChildren(...lines.flatMap((row, n) => {
    const pieces = n ? ["\n"] : [];
    let at = 0;
    const words = row.alignment ? wordsIn(row.text, page.target.value) : [];
    for (const [index, { text, begin, end }] of words.entries()) {
      const numbers = touching(row.targetSpans, begin, end);
      const span = Object.assign(element("span", {}, text), { row, index, numbers });
      spans.push(span);
      pieces.push(row.text.slice(at, begin), span);
      at = end;
    }
    return [...pieces, row.text.slice(at), ...marksOf(row)];
  }));
  if (!spans.length) return;
  const current = spans.find((span) => lines.indexOf(span.row) === line && span.index === word) ?? spans[0];
  enter(current);
  if (line >= 0) current.focus();
}

/** Let Tab reach this word and no other. */
function enter(span) {
  for (const other of page.translation.querySelectorAll("[tabindex]")) {
    for (const name of ["tabindex", "role", "aria-haspopup"]) other.removeAttribute(name);
    if (other.index === MARK) other.setAttribute("role", "img");
  }
  for (const [name, value] of [["tabindex", "0"], ["role", "button"], ["aria-haspopup", "dialog"]]) span.setAttribute(name, value);
}

/** Mark stretches of the source text, given as [begin, end]. */
function light(stretches) {
  const text = page.text.value, pieces = [];
  let at = 0;
  for (const [begin, end] of stretches) {
    pieces.push(text.slice(at, begin), element("mark", {}, text.slice(begin, end)));
    at = end;
  }
  page.mirror.replaceChildren(...pieces, `${text.slice(at)}\n`); // without a final newline, an empty last line has no height
}

/** The words of the source, as { text, begin, end }, that a word of the translation translates. */
function sourcesOf({ row, numbers }) {
  const sources = new Set((row.alignment ?? []).flatMap(([source, target]) => (numbers.has(target) ? [source] : [])));
  const isAligned = ({ begin, end }) => meet(touching(row.sourceSpans, begin, end), sources);
  return wordsIn(row.source, spoken()).filter(isAligned);
}

/** Whether two sets have an element in common. */
function meet(one, other) {
  return [...one].some((number) => other.has(number));
}

/** The text of words, with a blank where words were left out or separate. */
function joined(words) {
  const isApart = (index) => index > 0 && words[index - 1].end < words[index].begin;
  return words.map(({ text }, index) => (isApart(index) ? ` ${text}` : text)).join("");
}

/** Mark the words of the source that a word translates. */
function lightFor(span) {
  light(sourcesOf(span).map(({ begin, end }) => [begin + span.row.start, end + span.row.start]));
}

function point(event) {
  const { row } = event.target;
  if (!row || page.translation.classList.contains("old")) return;
  if (event.type === "focusin") selected = lines.indexOf(row);
  if (!open) lightFor(event.target);
}

/** Mark the translation of the word at the cursor. */
function follow() {
  const at = page.text.selectionStart, row = lines.findLast(({ start }) => start <= at);
  const isCurrent = !page.translation.classList.contains("old");
  const isInText = document.activeElement === page.text;
  // While the user types, the cursor selects nothing.
  if (isInText && row && isCurrent) selected = lines.indexOf(row);
  else if (isCurrent) selectInTranslation();
  const isShown = isInText && row?.alignment && isCurrent;
  const lit = isShown ? targetsOf(row, at - row.start) : new Set();
  for (const span of spans) span.classList.toggle("lit", span.row === row && meet(span.numbers, lit));
}

/** Remember the line of the translation in which the user's selection begins. */
function selectInTranslation() {
  const selection = getSelection();
  if (!selection.rangeCount) return;
  const { startContainer, startOffset } = selection.getRangeAt(0);
  // When lines are drawn again, the browser moves the selection to the element itself.
  if (startContainer === page.translation || !page.translation.contains(startContainer)) return;
  const before = document.createRange();
  before.setStart(page.translation, 0);
  before.setEnd(startContainer, startOffset);
  selected = before.toString().split("\n").length - 1;
}

/** The numbers of the spans of the translation that are aligned with the word at an offset of the source. */
function targetsOf(row, at) {
  const word = wordsIn(row.source, spoken()).findLast(({ begin }) => begin <= at);
  const sources = word ? touching(row.sourceSpans, word.begin, word.end) : new Set();
  return new Set(row.alignment.flatMap(([source, target]) => (sources.has(source) ? [target] : [])));
}

/** The nearest word in the next or previous row of the page. */
function vertical(span, step) {
  const { top, height } = span.getBoundingClientRect();
  const places = spans.map((other) => [other, other.getBoundingClientRect()]).filter(([, place]) => (place.top - top) * step > height / 2);
  const nearest = Math.min(...places.map(([, place]) => Math.abs(place.top - top)));
  const row = places.filter(([, place]) => Math.abs(place.top - top) < nearest + height / 2);
  const middle = (place) => place.left + place.width / 2;
  const from = middle(span.getBoundingClientRect());
  const distance = ([, place]) => Math.abs(middle(place) - from);
  return row.sort((one, two) => distance(one) - distance(two))[0]?.[0];
}

function pressed(event) {
  const span = event.target, forward = page.translation.matches(":dir(rtl)") ? -1 : 1;
  if (!span.row || event.ctrlKey || event.altKey || event.metaKey) return;
  const near = (step) => spans[spans.indexOf(span) + step];
  const moves = {
    ArrowRight: () => near(forward), ArrowLeft: () => near(-forward), Home: () => spans[0], End: () => spans.at(-1),
    ArrowDown: () => vertical(span, 1), ArrowUp: () => vertical(span, -1),
  };
  if (event.key in moves) {
    const next = moves[event.key]();
    if (next) { enter(next); next.focus(); }
  } else if (event.key === "Enter" || event.key === " ") {
    choose(span);
  } else return;
  event.preventDefault();
}

/** Open the alternatives of a word below it, or above it if there is more room. */
async function choose(span) {
  if (page.translation.classList.contains("old")) return;
  close(false);
  enter(open = span);
  span.classList.add("open");
  lightFor(span);
  const { row, index } = span, signal = (asking = new AbortController()).signal;
  if (index === MARK) return chooseSimilar(span);
  const language = page.target.value, current = wordsIn(row.text, language)[index];
  const from = joined(sourcesOf(span));
  const origin = from ? [" from “", element("bdi", attributesOf(spoken()), from), "”"] : [];
  page.word.replaceChildren(element("b", attributesOf(language), current.text), ...origin);
  show([], "Looking for alternatives …");
  page.words.showPopover();
  place(span);
  page.closeWords.focus();
  const before = row.text.slice(0, current.begin).trimStart(), similar = similarTo(row, index);
  try {
    const fields = { q: row.source, source: spoken(), alternatives: 10, prefix: before || " ", rest: row.text.slice(current.begin) };
    const answer = await ask("translate", question(fields), signal);
    const seen = new Set([current.text]), options = [];
    for (const text of [answer.translatedText, ...answer.alternatives].map((text) => text.trim())) {
      const others = wordsIn(text, language), at = others.findIndex(({ end }) => end > before.length);
      if (!text.startsWith(before) || at < 0 || options.length === SHOWN) continue;
      // In scripts without blanks, a word may begin in the part that stays.
      const word = text.slice(Math.max(others[at].begin, before.length), others[at].end);
      if (seen.has(word)) continue;
      seen.add(word);
      const shown = others[Math.min(at + CONTEXT, others.length - 1)];
      const more = text.slice(others[at].end, shown.end) + (shown === others.at(-1) ? "" : " …");
      const context = element("small", {}, more.trim());
      const option = element("button", { type: "button", role: "option", ...attributesOf(language) }, word, context);
      option.addEventListener("click", () => replace(row, index, text));
      options.push(option);
    }
    show([...options, ...similar], options.length ? "" : "There are no alternatives for this word.");
  } catch (error) {
    if (error.name !== "AbortError") show(similar, error.message);
  }
  place(span);
}

/** Open the similar entries of a line. */
function chooseSimilar(span) {
  page.word.replaceChildren(element("b", {}, "Similar texts in the translation memory"));
  page.words.showPopover();
  show(similarTo(span.row, MARK), "");
  place(span);
}

/** A text with the words emphasized that another text lacks. */
function compared(text, other) {
  const language = spoken(), words = wordsIn(text, language), pieces = [];
  let at = 0;
  for (const { text: word, begin, end } of differences(words, wordsIn(other, language))) {
    pieces.push(text.slice(at, begin), element("em", {}, word));
    at = end;
  }
  return [...pieces, text.slice(at)];
}

/** Options that replace a line by the similar entries of the translation memory. */
function similarTo(row, index) {
  if (row.memory?.match !== "fuzzy") return [];
  return row.memory.entries.map(({ source, target, score }) => {
    const entry = element("bdi", attributesOf(spoken()), ...compared(source, row.source));
    const like = element("small", { className: "similar", lang: "en", dir: "ltr" }, `${percent(score)} similar: `, entry);
    const option = element("button", { type: "button", role: "option", ...attributesOf(page.target.value) }, target, like);
    option.addEventListener("click", () => replace(row, index, target, source));
    return option;
  });
}

/** Show options, the first of which gets the focus, or a message. */
function show(options, message) {
  page.looking.textContent = message;
  page.others.replaceChildren(...options);
  page.others.hidden = !options.length;
  options[0]?.focus();
}

function place(span) {
  if (open !== span) return;
  const word = span.getBoundingClientRect(), { width, height } = page.words.getBoundingClientRect();
  const below = word.bottom + 6 + height < innerHeight || word.top < height + 6;
  const top = below ? Math.min(word.bottom + 6, innerHeight - height - 8) : word.top - height - 6;
  const start = span.matches(":dir(rtl)") ? word.right - width : word.left;
  const left = Math.max(8, Math.min(start, innerWidth - width - 8));
  Object.assign(page.words.style, { left: `${left}px`, top: `${Math.max(8, top)}px` });
}

/** Replace a line; `taken` is the source of the similar entry that the text translates, as in `rowOf`. */
function replace(row, index, text, taken = row.taken) {
  // The line is no longer that of the memory; similar entries stay similar.
  const memory = row.memory?.match === "fuzzy" ? row.memory : null;
  const changed = { text: leadOf(row.text) + text.trim(), alignment: [], targetSpans: [], probability: null };
  Object.assign(row, changed, { memory, corrected: false, taken });
  draw(lines.indexOf(row), index);
  chosen(page.translation.textContent);
}

function close(focus = true) {
  asking.abort();
  if (!open) return;
  open.classList.remove("open");
  light([]);
  const span = open;
  open = null;
  if (focus) span.focus();
  page.words.hidePopover();
}

function pressedInList(event) {
  const options = [...page.others.querySelectorAll("button")], at = options.indexOf(document.activeElement);
  const moves = { ArrowDown: (at + 1) % options.length, ArrowUp: (at + options.length - (at >= 0)) % options.length, Home: 0, End: options.length - 1 };
  if (event.key === "Escape") close();
  else if (event.key in moves && options.length) options[moves[event.key]].focus();
  else return;
  event.preventDefault();
}

listen(
  [page.translation, "keydown", pressed], [page.translation, "mouseover", point], [page.translation, "focusin", point],
  [page.translation, "mouseleave", () => open || light([])], [page.translation, "focusout", () => open || light([])],
  [page.translation, "click", (event) => event.target.row && getSelection().isCollapsed && choose(event.target)],
  [page.words, "keydown", pressedInList], [page.closeWords, "click", () => close()],
  [page.words, "focusout", ({ relatedTarget }) => relatedTarget && !page.words.contains(relatedTarget) && close(false)],
  [document, "pointerdown", (event) => page.words.contains(event.target) || event.target === open || close(false)],
  [document, "selectionchange", follow], [document, "scroll", () => open && place(open)], [window, "resize", () => open && place(open)],
);
