// Lines and their words: alignment, confidence, and alternatives at a word.
import { announce, attempt, element, listen, page } from "./elements.js";
import { question, spoken } from "./languages.js";
import { ask } from "./server.js";

const UNSURE = 0.5; // the legend has this number too
const SOURCE = 0, TARGET = 1; // the order of a pair in an alignment
// Of a blank line the server has no details, and of one that is in the target language already, no words.
const BLANK = { source: "", translation: "", words: [], sourceWords: [], alignment: [], confidence: [], protected: [], terms: [], indent: "" };
const lines = []; // of each line, what the server said of it and the elements of its words on both sides
const chosen = new Map(); // what was chosen for a source line; it stays while other lines are edited
let rest; // the part of the mirror behind the lines that were found in it
let asking = new AbortController();

/** The whole translation. */
export const translation = () => lines.map((line) => line.indent + line.translation).join("\n");

/** Forget what was chosen: the languages are others. */
export const forget = () => chosen.clear();

/** Mirror a new source, of whose words nothing is known. */
export function mirror(text) {
  rest = document.createTextNode(`${text}\n`); // without the last newline, an empty last line has no height
  page.mirror.replaceChildren(rest);
  for (const row of page.translation.children) row.className = "old";
}

/** The parts of a line, which begins at `first`: its `words`, which stand in it in this order, and what is between. */
function parts(line, words, number, first) {
  let end = 0;
  const found = words.flatMap((word, index) => {
    const begin = line.indexOf(word, end), between = line.slice(end, begin);
    end = begin + word.length;
    const place = { number, index, start: first + begin, end: first + end };
    return [between, element("span", { className: "word", textContent: word, place })];
  });
  return [...found, line.slice(end)];
}

const elementsOf = (found) => found.filter((part) => part instanceof Element);

/** Show a line's translation in the place of the one before; `sources` are the elements of its source's words. */
function showLine(number, details, sources) {
  const found = parts(details.translation, details.words, number, 0), targets = elementsOf(found);
  const row = element("div", { dir: "auto" }, details.indent, ...found);
  if (!row.textContent) row.append(element("br")); // else a copied selection lacks the blank line
  for (const [index, word] of targets.entries()) {
    Object.assign(word, { role: "button", tabIndex: -1, ariaHasPopup: "menu" });
    const confidence = details.confidence[index] ?? null; // of a word that was copied, the server has none
    word.title = confidence === null ? "" : `Probability ${Math.round(100 * confidence)} %`;
    word.classList.toggle("unsure", confidence !== null && confidence < UNSURE);
  }
  for (const kind of ["protected", "terms"]) for (const index of details[kind]) targets[index]?.classList.add(kind);
  row.classList.toggle("lost", Boolean(details.flags));
  page.translation.children[number]?.replaceWith(row);
  if (!row.isConnected) page.translation.append(row);
  lines[number] = { ...details, elements: [sources, targets] };
  finishWords();
}

/** Show the line whose source comes next in the text; the server has left out the white space around it. */
export function showNextLine(number, known) {
  const details = { ...BLANK, ...known, ...chosen.get(known?.source) };
  const before = rest.data.slice(0, rest.data.indexOf(details.source));
  const start = page.mirror.textContent.length - rest.length + before.length;
  const found = parts(details.source, details.sourceWords, number, start);
  rest.before(before, ...found);
  rest.deleteData(0, before.length + details.source.length);
  showLine(number, { ...details, indent: before.split("\n").pop() }, elementsOf(found));
}

/** One of the words is a tab stop, and the legend is there if it is needed. */
function finishWords() {
  const first = page.translation.querySelector(".word");
  if (first && !page.translation.querySelector("[tabindex='0']")) first.tabIndex = 0;
  for (const each of page.legends.children) each.hidden = !page.translation.querySelector(`.${each.dataset.of}`);
  page.copy.disabled = !lines.length;
}

function highlight(word, side) {
  if (!word && page.menu.matches(":popover-open")) return; // the word whose menu is open stays marked
  for (const each of document.querySelectorAll(".aligned")) each.classList.remove("aligned");
  if (!word) return;
  const { alignment, elements } = lines[word.place.number], other = 1 - side;
  word.classList.add("aligned");
  for (const pair of alignment) {
    if (pair[side] === word.place.index) elements[other][pair[other]].classList.add("aligned");
  }
}

/** Keep the lines up to a number of them. */
export function cut(count) {
  lines.length = Math.min(lines.length, count);
  while (page.translation.children.length > count) page.translation.lastChild.remove();
  finishWords();
}

// Alternatives at a word

/** Put the menu below a word, or above it where there is no room, as far as it fits. */
function placeMenu(word) {
  const at = word.getClientRects()[0], { width, height } = page.menu.getBoundingClientRect();
  const top = at.bottom + 4 + height > innerHeight ? Math.max(8, at.top - height - 4) : at.bottom + 4;
  page.menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  page.menu.style.top = `${scrollY + top}px`;
}

async function openMenu(word) {
  const line = lines[word.place.number], before = line.translation.slice(0, word.place.start).trimEnd();
  page.menu.replaceChildren(element("p", { textContent: "Looking for alternatives …" }));
  page.menu.togglePopover(true);
  placeMenu(word);
  page.menu.focus();
  asking.abort();
  asking = new AbortController();
  try {
    const asked = question({ q: line.source, source: spoken(), before, count: 6 });
    const { alternatives } = await (await ask("alternatives", asked, asking.signal)).json();
    const nothing = element("p", { textContent: "There is no other word here." });
    page.menu.replaceChildren(...(alternatives.length ? alternatives.map((each) => item(word, line, each)) : [nothing]));
    placeMenu(word);
    (page.menu.querySelector("button") ?? page.menu).focus();
  } catch (error) {
    if (error.name !== "AbortError") page.menu.togglePopover(false);
    throw error;
  }
}

function item(word, line, { word: other, translation, probability }) {
  const share = element("span", { textContent: `${(100 * probability).toFixed(probability < 0.1 ? 1 : 0)} %` });
  const made = element("button", { type: "button", role: "menuitemradio", tabIndex: -1 });
  made.append(element("bdi", { textContent: other, lang: page.target.value }), share);
  made.ariaChecked = String(translation === line.translation);
  made.addEventListener("click", () => choose(word.place, line, translation));
  return made;
}

/** Replace a line's translation by one that is the same before a word; of the words from there on nothing is known. */
function choose({ number, index }, line, translation) {
  page.menu.togglePopover(false);
  if (translation !== line.translation) {
    const alignment = line.alignment.filter((pair) => pair[TARGET] < index);
    const known = { translation, alignment, confidence: line.confidence.slice(0, index), words: translation.split(/\s+/).filter(Boolean), protected: [], terms: [] };
    chosen.set(line.source, known);
    showLine(number, { ...line, ...known }, line.elements[SOURCE]);
  }
  lines[number].elements[TARGET][index]?.focus();
  announce(translation, page.target.value);
}

// Keys

/** Move the focus from one of `elements` to its neighbour; true if `key` is one that moves. */
function move(elements, from, key, back, forward) {
  const last = elements.length - 1, at = elements.indexOf(from);
  const to = { [back]: Math.max(at - 1, 0), [forward]: Math.min(at + 1, last), Home: 0, End: last }[key];
  elements[to]?.focus();
  return to !== undefined;
}

function keyOnWord(event) {
  const word = event.target.closest(".word");
  if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
  const arrows = getComputedStyle(word).direction === "rtl" ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  const firsts = lines.map((line) => line.elements[TARGET][0] ?? []).flat();
  const words = [...page.translation.querySelectorAll(".word")];
  if (event.key === "Enter" || event.key === " ") attempt(openMenu, word);
  else if (event.key.startsWith("Arrow") && !arrows.includes(event.key)) {
    move(firsts, lines[word.place.number].elements[TARGET][0], event.key, "ArrowUp", "ArrowDown");
  } else if (!move(words, word, event.key, ...arrows)) return;
  event.preventDefault();
}

function keyInMenu(event) {
  if (event.key === "Tab") page.menu.togglePopover(false);
  else if (!move([...page.menu.querySelectorAll("button")], event.target, event.key, "ArrowUp", "ArrowDown")) return;
  event.preventDefault();
}

/** Open the menu at a word, unless the mouse has just selected text. */
function clicked(event) {
  if (event.target.matches(".word") && getSelection().isCollapsed) attempt(openMenu, event.target);
}

function focused(event) {
  const word = event.target.closest(".word");
  for (const each of page.translation.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
  word.tabIndex = 0;
  highlight(word, TARGET);
}

function pointedInSource(event) {
  const below = document.elementsFromPoint(event.clientX, event.clientY);
  highlight(below.find((each) => each.matches("#mirror .word")), SOURCE);
}

function caretMoved() {
  if (document.activeElement !== page.text) return;
  const at = page.text.selectionEnd, words = [...page.mirror.querySelectorAll(".word")];
  highlight(words.find((word) => word.place.start <= at && at <= word.place.end), SOURCE);
}

listen(
  [page.translation, "click", clicked], [page.translation, "keydown", keyOnWord], [page.translation, "focusin", focused],
  [page.translation, "mouseover", (event) => highlight(event.target.closest(".word"), TARGET)],
  [page.translation, "mouseleave", () => highlight()], [page.translation, "focusout", () => highlight()],
  [page.text, "mousemove", pointedInSource], [page.text, "mouseleave", () => highlight()],
  [document, "selectionchange", caretMoved],
  [page.menu, "keydown", keyInMenu], [page.menu, "beforetoggle", (event) => event.newState === "closed" && asking.abort()],
);
