// The dialog in which users correct a translation, with a row for each line of the text.
import { draftOf, keepCorrections, keepDraft } from "./corrections.js";
import { element, listen, page } from "./elements.js";
import { attributesOf, question } from "./languages.js";
import { linesWithText } from "./segments.js";
import { ask } from "./server.js";

let asked = null; // what the dialog is about, see `openSuggestion`
let rows = []; // of the lines that are not blank: { index, source, box }
let saved = () => {};

/** Call a function with the number of corrected lines when the server has saved them. */
export function onSaved(listener) { saved = listener; }

/**
 * Let the user correct the `translation` of a `text`, from the line with the index `line` on. `usual` is the translation
 * by the machine, or as corrected before; lines that are as in it are not sent.
 */
export function openSuggestion(about) {
  const { text, source, target, translation, line } = asked = about;
  const sources = text.split("\n");
  rows = linesWithText(text).map((number) => ({ index: number - 1, source: sources[number - 1].trim() }));
  page.betterRows.replaceChildren(...rows.map(rowOf));
  page.betterRows.classList.toggle("single", rows.length === 1);
  page.betterKeys.hidden = rows.length === 1;
  fill(draftOf(text, source, target) ?? translation);
  page.betterError.textContent = "";
  check();
  page.better.showModal();
  const first = rows.find(({ index }) => index >= line) ?? rows.at(-1);
  page.betterRows.scrollTop = 0;
  first.box.focus();
  if (first !== rows[0]) first.box.closest("li").scrollIntoView({ block: "start" });
}

/** The element of a row: the number of its line, the source, and a box for the translation. */
function rowOf(row) {
  const { index, source } = row, number = index + 1;
  const id = `betterSource${number}`;
  const quoted = element("p", { id, className: "quoted", ...attributesOf(asked.source) }, source);
  row.box = element("textarea", { rows: 1, enterKeyHint: "next", ...attributesOf(asked.target) });
  row.box.setAttribute("aria-label", rows.length > 1 ? `Better translation of line ${number}` : "Better translation");
  row.box.setAttribute("aria-describedby", id);
  const field = element("div", { className: "grown" }, row.box);
  listen(
    [row.box, "input", () => { flatten(row); edited(); }],
    [row.box, "paste", pasted],
    [row.box, "keydown", (event) => pressed(event, row)],
  );
  return element("li", {}, element("span", { className: "number" }, `${number}`), quoted, field);
}

/** Show the lines of a translation in the rows. */
function fill(translation) {
  const lines = translation.split("\n");
  for (const { index, box } of rows) {
    box.value = (lines[index] ?? "").trim();
    grow(box);
  }
}

/** Let a box be as high as its text: behind it is the same text, see page.css. */
function grow(box) { box.parentElement.dataset.text = box.value; }

/** A row is one line: line breaks that were pasted or dropped become blanks. */
function flatten({ box }) {
  // A value of the same length, so that the cursor can stay.
  const { selectionStart: start, selectionEnd: end } = box, flat = box.value.replaceAll("\n", " ");
  if (flat !== box.value) {
    box.value = flat;
    box.setSelectionRange(start, end);
  }
  grow(box);
}

/** A whole translation, with as many lines as there are rows, goes into all rows, whichever it is pasted into. */
function pasted(event) {
  const lines = event.clipboardData.getData("text/plain").split(/\r?\n/).filter((line) => line.trim());
  if (rows.length < 2 || lines.length !== rows.length) return;
  event.preventDefault();
  for (const [number, { box }] of rows.entries()) {
    box.value = lines[number].trim();
    grow(box);
  }
  edited();
}

/** Enter moves to the next row, and from the last row to the button. */
function pressed(event, row) {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  const next = rows[rows.indexOf(row) + 1];
  if (next) next.box.focus();
  else if (!page.send.disabled) page.send.focus();
}

/** The whole translation, as in the rows; lines without a row stay. */
function better() {
  const lines = asked.text.split("\n").map(() => ""), before = asked.translation.split("\n");
  for (const { index, box } of rows) {
    const isSame = box.value === (before[index] ?? "").trim();
    lines[index] = isSame ? before[index] ?? "" : box.value;
  }
  return lines.join("\n");
}

const isUnchanged = () => better().trimEnd() === asked.translation.trimEnd();
const counted = (number) => `${number.toLocaleString("en")} ${number === 1 ? "line" : "lines"}`;

/** The pairs of lines whose translation was changed, as [line, translation], or a `problem`. */
function changes() {
  const before = asked.usual.split("\n"), pairs = [];
  let problem = null;
  for (const { index, source, box } of rows) {
    const target = box.value.trim(), isChanged = target !== (before[index] ?? "").trim();
    box.setAttribute("aria-invalid", isChanged && !target);
    if (!isChanged) continue;
    const where = rows.length > 1 ? `Line ${index + 1} of the translation` : "The translation";
    if (!target) problem ??= `${where} is empty.`;
    pairs.push([source, target]);
  }
  if (problem) return { problem };
  return pairs.length ? { pairs } : { problem: "Change the translation to send it." };
}

/** Say what will be sent, or why nothing can be. */
function check() {
  const { problem, pairs } = changes();
  page.send.disabled = Boolean(problem);
  page.startOver.hidden = isUnchanged();
  const said = rows.length > 1 && pairs ? `${counted(pairs.length)} of ${rows.length.toLocaleString("en")} will be sent.` : "";
  page.betterState.textContent = problem ?? said;
}

function edited() {
  const { text, source, target } = asked;
  keepDraft(isUnchanged() ? null : better(), text, source, target);
  check();
}

function startOver() {
  fill(asked.translation);
  edited();
  rows[0].box.focus();
}

async function send() {
  const { pairs } = changes(), { text, source, target } = asked;
  if (!pairs) return;
  page.send.disabled = true; // until the server has answered
  try {
    const q = pairs.map(([line]) => line), s = pairs.map(([, line]) => line);
    await ask("suggest", question({ q, s, source, target }));
    keepCorrections(pairs, source, target);
    keepDraft(null, text, source, target);
    page.better.close();
    saved(pairs.length);
  } catch (error) {
    page.betterError.textContent = error.message;
    page.send.disabled = false;
  }
}

listen([page.startOver, "click", startOver], [page.send, "click", send]);
