// The dialog in which users correct a translation.
import { draftOf, keepCorrections, keepDraft } from "./corrections.js";
import { listen, page } from "./elements.js";
import { attributesOf, question } from "./languages.js";
import { ask } from "./server.js";

let asked = null; // what the dialog is about, see `openSuggestion`
let saved = () => {};

/** Call a function with the number of corrected lines when the server has saved them. */
export function onSaved(listener) { saved = listener; }

/**
 * Let the user correct the `translation` of a `text`. `usual` is the translation by the machine, or as corrected
 * before; lines that are as in it are not sent.
 */
export function openSuggestion(about) {
  const { text, source, target, translation } = asked = about;
  const draft = draftOf(text, source, target);
  Object.assign(page.betterSource, { textContent: text, ...attributesOf(source) });
  Object.assign(page.betterText, { value: draft ?? translation, ...attributesOf(target) });
  page.betterError.textContent = "";
  check();
  page.better.showModal();
  page.betterText.focus();
}

// A break at the end of the text adds no line.
const linesOf = (text) => text.trimEnd().split("\n");
const counted = (number) => `${number.toLocaleString("en")} ${number === 1 ? "line" : "lines"}`;

/** The pairs of lines whose translation was changed, as [line, translation], or a `problem`. */
function changes() {
  const sources = linesOf(asked.text), targets = linesOf(page.betterText.value), before = linesOf(asked.usual);
  const where = (index) => (sources.length > 1 ? `Line ${index + 1} of the translation` : "The translation");
  if (sources.length !== targets.length) {
    const numbers = `The source has ${counted(sources.length)}, but the translation has ${counted(targets.length)}`;
    return { problem: `${numbers}. Write the translation of each line on its own line.` };
  }
  const pairs = [];
  for (const [index, source] of sources.entries()) {
    const target = targets[index].trim();
    if (target === (before[index] ?? "").trim()) continue;
    if (!target) return { problem: `${where(index)} is empty.` };
    if (!source.trim()) return { problem: `${where(index)} has text, but its source is empty.` };
    pairs.push([source.trim(), target]);
  }
  return pairs.length ? { pairs } : { problem: "Change the translation to send it." };
}

/** Say what will be sent, or why nothing can be. */
function check() {
  const { problem, pairs } = changes();
  page.send.disabled = Boolean(problem);
  page.startOver.hidden = page.betterText.value === asked.translation;
  const lines = linesOf(asked.text).length;
  page.betterState.textContent = problem ?? (lines > 1 ? `${counted(pairs.length)} of ${lines} will be sent.` : "");
}

function edited() {
  const { text, source, target, translation } = asked, better = page.betterText.value;
  keepDraft(better === translation ? null : better, text, source, target);
  check();
}

function startOver() {
  page.betterText.value = asked.translation;
  edited();
  page.betterText.focus();
}

async function send() {
  const { pairs } = changes(), { text, source, target } = asked;
  if (!pairs) return;
  page.send.disabled = true; // until the server has answered
  try {
    const q = pairs.map(([line]) => line), s = pairs.map(([, better]) => better);
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

listen([page.betterText, "input", edited], [page.startOver, "click", startOver], [page.send, "click", send]);
