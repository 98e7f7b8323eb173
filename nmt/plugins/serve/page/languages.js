// The languages of both panes, which the browser remembers, and the key, which it forgets with the tab.
import { page } from "./elements.js";

const SURE = 50; // per cent
const remembered = storage("localStorage");
export const session = storage("sessionStorage");
let languages = [], detected = "";

/** The storage of that name, or an object that is forgotten where the browser stores nothing. */
function storage(name) {
  try { return window[name]; } catch { return {}; }
}

/** The fields of every request. */
export function question(more) {
  return { source: page.source.value, target: page.target.value, ...(session.apiKey && { api_key: session.apiKey }), ...more };
}

const nameOf = (code) => languages.find((each) => each.code === code)?.name ?? code;
const targetsOf = (code) => languages.find((each) => each.code === code)?.targets ?? [];

/** The language of the source, as far as it is known. */
export const spoken = () => (page.source.value === "auto" ? detected : page.source.value);

/** Offer these languages; the usual ones are chosen where none are remembered. */
export function offer(known, usual) {
  languages = known;
  setLanguages(remembered.source ?? usual.source.code, remembered.target ?? usual.target.code);
}

function fill(select, codes, wanted) {
  select.replaceChildren(...codes.map((code) => new Option(code === "auto" ? "Detect language" : nameOf(code), code)));
  if (codes.includes(wanted)) select.value = wanted;
}

export function setLanguages(source, target) {
  const sources = languages.filter((each) => each.targets.length).map((each) => each.code);
  fill(page.source, ["auto", ...sources], source);
  const reachable = page.source.value === "auto" ? sources.flatMap(targetsOf) : targetsOf(page.source.value);
  fill(page.target, [...new Set(reachable)], target);
  [remembered.source, remembered.target] = [page.source.value, page.target.value];
  setDetected("");
}

/** Tell the language that the server detected; it takes one that it can translate, sure or not. */
export function setDetected(code, confidence = 0) {
  detected = code;
  const found = `${nameOf(code)} (${confidence < SURE ? "guessed" : "detected"})`;
  page.source.options[0].text = code && page.source.value === "auto" ? found : "Detect language";
  page.text.lang = spoken();
  page.translation.lang = page.target.value;
  page.swap.disabled = !targetsOf(page.target.value).includes(spoken());
}
