// The lines that the user has corrected, and unfinished corrections. The browser forgets both when the tab closes.
import { session } from "./elements.js";
import { leadOf } from "./segments.js";

const MOST = 1000; // lines or drafts; the oldest are forgotten
const corrections = stored("corrections"), drafts = stored("drafts");
const key = (text, source, target) => `${source} ${target} ${text.trim()}`;
// With the blank lines at its beginning, because a draft has a line for each line of the text.
const draftKey = (text, source, target) => `${source} ${target} ${text.trimEnd()}`;

function stored(name) {
  try { return new Map(JSON.parse(session[name] ?? "[]")); } catch { return new Map(); }
}

function save(name, texts) {
  for (const oldest of [...texts.keys()].slice(0, -MOST)) texts.delete(oldest);
  try { session[name] = JSON.stringify([...texts]); } catch { delete session[name]; }
}

/** Keep corrections of lines, given as [line, better translation]. */
export function keepCorrections(pairs, source, target) {
  for (const [line, better] of pairs) corrections.set(key(line, source, target), better);
  save("corrections", corrections);
}

/** What the user has written about a text, but not sent; undefined if there is nothing. */
export const draftOf = (text, source, target) => drafts.get(draftKey(text, source, target));

/** Keep a draft, or forget it if it is null. */
export function keepDraft(draft, text, source, target) {
  if (draft === null) drafts.delete(draftKey(text, source, target));
  else drafts.set(draftKey(text, source, target), draft);
  save("drafts", drafts);
}

/** The server's answer with the user's corrections in the place of the machine's lines. */
export function withCorrections(text, answer, source, target) {
  const lines = answer.translatedText.split("\n"), details = [...(answer.details ?? [])];
  let number = 0; // of a line that is not blank
  for (const [index, line] of text.split("\n").entries()) {
    if (leadOf(line).length === line.length) continue;
    const better = corrections.get(key(line, source, target));
    if (better !== undefined) {
      const isSame = (lines[index] ?? "").trim() === better;
      const alignment = isSame ? details[number] : { alignment: [], target_words: [] };
      details[number] = { ...alignment, flags: [], probability: null, memory: null, corrected: true };
      if (!isSame) lines[index] = leadOf(line) + better;
    }
    number += 1;
  }
  return { ...answer, translatedText: Array.from(lines, (line) => line ?? "").join("\n"), details };
}
