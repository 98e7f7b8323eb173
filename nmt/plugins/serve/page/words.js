// Lines and their words: alignment and confidence.
import { element, listen, page } from "./elements.js";

const UNSURE = 0.5; // the legend has this number too
const SOURCE = 0, TARGET = 1; // the order of a pair in an alignment
// Of a blank line the server has no details, and of one that is in the target language already, no words.
const BLANK = { source: "", translation: "", words: [], sourceWords: [], alignment: [], confidence: [] };
const lines = []; // of each line, what the server said of it and the elements of its words on both sides
let rest; // the part of the mirror behind the lines that were found in it

/** The whole translation. */
export const translation = () => lines.map((line) => line.indent + line.translation).join("\n");

/** Mirror a new source, of whose words nothing is known. */
export function mirror(text) {
  rest = document.createTextNode(`${text}\n`); // without the last newline, an empty last line has no height
  page.mirror.replaceChildren(rest);
  for (const row of page.translation.children) row.className = "old";
}

/** The parts of a line, which begins at `first`: its `words`, which stand in it in this order, and what is between. */
function parts(line, words, number, first) {
  let end = 0;
  const pieces = words.flatMap((word, index) => {
    const begin = line.indexOf(word, end), between = line.slice(end, begin);
    end = begin + word.length;
    const place = { number, index, start: first + begin, end: first + end };
    return [between, element("span", { className: "word", textContent: word, place })];
  });
  return [...pieces, line.slice(end)];
}

const elementsOf = (pieces) => pieces.filter((piece) => piece instanceof Element);

/** Show the line whose source comes next in the text; the server has left out the white space around it. */
function showNextLine(number, details) {
  const before = rest.data.slice(0, rest.data.indexOf(details.source)), indent = before.split("\n").pop();
  const start = page.mirror.textContent.length - rest.length + before.length;
  const sourceParts = parts(details.source, details.sourceWords, number, start);
  rest.before(before, ...sourceParts);
  rest.deleteData(0, before.length + details.source.length);
  const targetParts = parts(details.translation, details.words, number, 0), targets = elementsOf(targetParts);
  const row = element("div", { dir: "auto" }, indent, ...targetParts);
  if (!row.textContent) row.append(element("br")); // else a copied selection lacks the blank line
  for (const [index, word] of targets.entries()) {
    const confidence = details.confidence[index] ?? null; // of a word that was copied, the server has none
    Object.assign(word, { role: "button", tabIndex: -1 });
    word.title = confidence === null ? "" : `Probability ${Math.round(100 * confidence)} %`;
    word.classList.toggle("unsure", confidence !== null && confidence < UNSURE);
  }
  row.classList.toggle("lost", Boolean(details.flags));
  lines.push({ ...details, indent, elements: [elementsOf(sourceParts), targets] });
  return row;
}

/** Show a translation: how many lines it has, and of those that are not blank, what the server said and their flags. */
export function show(count, details, flags) {
  lines.length = 0;
  const byNumber = new Map(details.map((line) => [line.line, line]));
  for (const line of flags) Object.assign(byNumber.get(line.line) ?? {}, { flags: line.flags });
  const rows = Array.from({ length: count }, (_, number) => showNextLine(number, { ...BLANK, ...byNumber.get(number) }));
  page.translation.replaceChildren(...rows);
  const first = page.translation.querySelector(".word");
  if (first) first.tabIndex = 0; // the arrow keys lead to the other words
  for (const legend of page.legends.children) legend.hidden = !page.translation.querySelector(`.${legend.dataset.of}`);
  page.copy.disabled = !lines.length;
}

function highlight(word, side) {
  for (const marked of document.querySelectorAll(".aligned")) marked.classList.remove("aligned");
  if (!word || !lines[word.place.number]) return;
  const { alignment, elements } = lines[word.place.number], other = 1 - side;
  word.classList.add("aligned");
  for (const pair of alignment) {
    if (pair[side] === word.place.index) elements[other][pair[other]].classList.add("aligned");
  }
}

function keyOnWord(event) {
  const words = [...page.translation.querySelectorAll(".word")], at = words.indexOf(event.target);
  if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const back = getComputedStyle(event.target).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
  const last = words.length - 1, step = event.key === back ? -1 : 1;
  const to = { ArrowLeft: at + step, ArrowRight: at + step, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  words[Math.max(0, Math.min(to, last))].focus();
  event.preventDefault();
}

function focused(event) {
  for (const word of page.translation.querySelectorAll("[tabindex='0']")) word.tabIndex = -1;
  event.target.tabIndex = 0;
  highlight(event.target, TARGET);
}

function pointedInSource(event) {
  const below = document.elementsFromPoint(event.clientX, event.clientY);
  highlight(below.find((under) => under.matches("#mirror .word")), SOURCE);
}

function caretMoved() {
  if (document.activeElement !== page.text) return;
  const at = page.text.selectionEnd, words = [...page.mirror.querySelectorAll(".word")];
  highlight(words.find((word) => word.place.start <= at && at <= word.place.end), SOURCE);
}

listen(
  [page.translation, "keydown", keyOnWord], [page.translation, "focusin", focused],
  [page.translation, "mouseover", (event) => highlight(event.target.closest(".word"), TARGET)],
  [page.translation, "mouseleave", () => highlight()], [page.translation, "focusout", () => highlight()],
  [page.text, "mousemove", pointedInSource], [page.text, "mouseleave", () => highlight()],
  [document, "selectionchange", caretMoved],
);
