// The languages of both sides, which the browser remembers, and the API key, which it forgets when the tab closes.
import { local, page, session } from "./elements.js";

const SURE = 50; // percent
let languages = [], detected = "";

/** The fields common to all requests, plus `more`. */
export function question(more) {
  return { source: page.source.value, target: page.target.value, ...(session.apiKey && { api_key: session.apiKey }), ...more };
}

export const nameOf = (code) => languages.find((language) => language.code === code)?.name ?? code;
const targetsOf = (code) => languages.find((language) => language.code === code)?.targets ?? [];

/** A language code as BCP 47 has it, such as zh-CN for zh_CN; empty, which means unknown, if it is none. */
export function tag(code) {
  try { return Intl.getCanonicalLocales(code.replaceAll("_", "-"))[0] ?? ""; } catch { return ""; }
}

/** The language of the source text; empty if it has not been detected yet. */
export const spoken = () => (page.source.value === "auto" ? detected : page.source.value);

/** Offer these languages, and select the remembered or default ones. */
export function offer(served, usual) {
  languages = served;
  setLanguages(local.source ?? usual.source.code, local.target ?? usual.target.code);
}

/** What is served, such as English → German. */
export function pairs() {
  const served = languages.flatMap(({ code, targets }) => targets.map((target) => `${nameOf(code)} → ${nameOf(target)}`));
  return served.length > 2 ? `${served.length} language pairs` : served.join(", ");
}

function fill(select, codes, chosen) {
  select.replaceChildren(...codes.map((code) => new Option(code === "auto" ? "Detect language" : nameOf(code), code)));
  if (codes.includes(chosen)) select.value = chosen;
}

export function setLanguages(source, target) {
  const sources = languages.filter((language) => language.targets.length).map((language) => language.code);
  fill(page.source, ["auto", ...sources], source);
  const reachable = page.source.value === "auto" ? sources.flatMap(targetsOf) : targetsOf(page.source.value);
  fill(page.target, [...new Set(reachable)], target);
  [local.source, local.target] = [page.source.value, page.target.value];
  setDetected("");
}

/** Show the language that the server detected. */
export function setDetected(code, confidence = 0) {
  detected = code;
  const label = `${nameOf(code)} (${confidence < SURE ? "guessed" : "detected"})`;
  page.source.options[0].text = code && page.source.value === "auto" ? label : "Detect language";
  page.text.lang = tag(spoken());
  page.translation.lang = tag(page.target.value);
  page.swap.hidden = !targetsOf(page.target.value).includes(spoken());
  page.arrow.toggleAttribute("hidden", !page.swap.hidden);
}
