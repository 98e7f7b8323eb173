// The languages of both sides, which the browser remembers, and the API key, which it forgets when the tab closes.
import { element, local, page, session } from "./elements.js";

const SURE = 50; // percent
const MANY = 20; // languages; longer lists are sorted, and begin with those used last
const LAST_USED = 5; // languages
let languages = [], detected = "";

/** The fields common to all requests, plus `more`. */
export function question(more) {
  return { source: page.source.value, target: page.target.value, ...(session.apiKey && { api_key: session.apiKey }), ...more };
}

const find = (code) => languages.find((language) => language.code === code);
export const nameOf = (code) => find(code)?.name ?? code;
const targetsOf = (code) => find(code)?.targets ?? [];

/** A language code as BCP 47 has it, such as zh-CN for zh_CN; empty (unknown) if it is not served. */
export const tag = (code) => find(code)?.tag ?? "";

/** The direction of a language: ltr, rtl, or that of the text itself if the language is unknown. */
export const direction = (code) => find(code)?.direction ?? "auto";

/** The language and direction of an element with text in a language. */
export const attributesOf = (code) => ({ lang: tag(code), dir: direction(code) });

/**
 * The names of a language without its region, which matters only if the language is served for
 * several ones: 简体中文 for 简体中文 (中国).
 */
function namesOf(code) {
  const { name = code, nativeName = name, shortName = name, shortNativeName = nativeName } = find(code) ?? {};
  const isAlone = languages.every((other) => other.code === code || other.shortName !== shortName);
  return isAlone ? [shortNativeName, shortName] : [nativeName, name];
}

/**
 * A language for those who speak it and those who do not: 日本語 – Japanese. In a long list, the English name comes
 * first, because browsers find an option by its first letters.
 */
function label(code) {
  const [nativeName, name] = namesOf(code);
  if (nativeName.toLowerCase() === name.toLowerCase()) return name;
  return languages.length > MANY ? `${name} – ${nativeName}` : `${nativeName} – ${name}`;
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
  const served = languages.flatMap(({ code, targets }) => targets.map((target) => [code, target]));
  if (served.length > 2) return `${served.length.toLocaleString("en")} language pairs`;
  return served.map(([source, target]) => `${nameOf(source)} → ${nameOf(target)}`).join(", ");
}

function optionOf(code) {
  const option = new Option(code === "auto" ? "Detect language" : label(code), code);
  // Chinese and Japanese share characters, but write them differently.
  option.lang = code === "auto" ? "en" : tag(code);
  return option;
}

/** The options of a list; a long one is in the order of its labels, after the languages used last. */
function optionsOf(codes) {
  const options = codes.filter((code) => code !== "auto").map(optionOf);
  const first = codes.includes("auto") ? [optionOf("auto")] : [];
  if (codes.length <= MANY) return [...first, ...options];
  options.sort((one, other) => one.text.localeCompare(other.text, "en"));
  const last = lastUsed().filter((code) => codes.includes(code)).map(optionOf);
  const groups = [["Last used", last], ["All languages", options]].filter(([, members]) => members.length);
  return [...first, ...groups.map(([name, members]) => element("optgroup", { label: name }, ...members))];
}

const lastUsed = () => (local.lastUsed ?? "").split(" ").filter(find);

function remember(...codes) {
  const used = [...codes.filter(find), ...lastUsed()];
  local.lastUsed = [...new Set(used)].slice(0, LAST_USED).join(" ");
}

function fill(select, codes, chosen) {
  select.replaceChildren(...optionsOf(codes));
  if (codes.includes(chosen)) select.value = chosen;
  select.title = select.value === "auto" ? "" : nameOf(select.value);
}

export function setLanguages(source, target) {
  remember(target, source);
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
  const guess = `${namesOf(code)[1]} (${confidence < SURE ? "guessed" : "detected"})`;
  page.source.options[0].text = code && page.source.value === "auto" ? guess : "Detect language";
  for (const box of [page.text, page.mirror]) Object.assign(box, attributesOf(spoken()));
  Object.assign(page.translation, attributesOf(page.target.value));
  page.swap.hidden = !targetsOf(page.target.value).includes(spoken());
  page.arrow.toggleAttribute("hidden", !page.swap.hidden);
}
