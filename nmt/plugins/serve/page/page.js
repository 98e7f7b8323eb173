// The page of `nmt serve`: text, its translation, and everything around them.
import { withCorrections } from "./corrections.js";
import { announce, attempt, element, listen, local, notify, page, session } from "./elements.js";
import { offerFiles, translateFiles } from "./files.js";
import { onReopen, record } from "./history.js";
import { attributesOf, offer, pairs, question, setDetected, setLanguages, spoken, tag } from "./languages.js";
import { linesWithText } from "./segments.js";
import { ask } from "./server.js";
import { onSaved, openSuggestion } from "./suggesting.js";
import { onChoice, selectedLine, showWords } from "./words.js";

const LONG = 600; // characters; longer texts are shown in smaller letters
const NEAR = 0.9; // share of the limit from which the count warns
const SETTLED = 3000; // milliseconds after which a translation belongs to the history
const FEW = 5; // lines whose numbers are listed
const EXAMPLES = {
  ar: "افتح الملف واختر الجهاز.",
  de: "Öffne die Datei und wähle das Gerät aus.",
  el: "Ανοίξτε το αρχείο και επιλέξτε τη συσκευή.",
  en: "Open the file and select the device.",
  es: "Abra el archivo y elija el dispositivo.",
  fa: "پرونده را باز کنید و دستگاه را انتخاب کنید.",
  fr: "Ouvrez le fichier et choisissez l’appareil.",
  he: "פתחו את הקובץ ובחרו את ההתקן.",
  hi: "फ़ाइल खोलें और डिवाइस चुनें।",
  it: "Apri il file e scegli il dispositivo.",
  ja: "ファイルを開いてデバイスを選択してください。",
  ka: "გახსენით ფაილი და აირჩიეთ მოწყობილობა.",
  ko: "파일을 열고 장치를 선택하세요.",
  pt: "Abra o arquivo e escolha o dispositivo.",
  ru: "Откройте файл и выберите устройство.",
  th: "เปิดไฟล์แล้วเลือกอุปกรณ์",
  uk: "Відкрийте файл і виберіть пристрій.",
  zh: "打开文件并选择设备。",
  "zh-Hant": "開啟檔案並選擇裝置。",
};
const FLAGS = {
  empty: "has no translation", repetition: "words may be repeated by mistake", copied_source: "words may be left untranslated",
  number: "a number may differ", url: "a link or an address may differ", placeholder: "a placeholder such as {name} may differ",
  wrong_script: "some letters are from another script", length_ratio: "the translation is unusually long or short",
};
const MEMORY = {
  exact: "From the translation memory", sentences: "Partly from the translation memory",
  fuzzy: "The translation memory has similar texts: select a mark such as 80% to see them",
};
let settings = { charLimit: -1 };
let running = new AbortController();
let typing, settling;
let shown = { text: "", answer: { translatedText: "" }, usual: "" }; // `usual` is the translation before the user chose other words

const mark = (old) => page.translation.classList.toggle("old", old);

/** A sentence in the source language to try; undefined if there is none. */
function exampleFor(code) {
  const { language, script } = tag(code) ? new Intl.Locale(tag(code)).maximize() : {};
  return EXAMPLES[`${language}-${script}`] ?? EXAMPLES[language];
}

const current = () => ({ source: spoken(), target: page.target.value, text: page.text.value, translation: page.translation.textContent });

/** Show the translation of a text, with the user's corrections. */
function show(text, answer) {
  const { translatedText, details } = withCorrections(text, answer, spoken(), page.target.value);
  shown = { text, answer, usual: translatedText };
  showWords(text, translatedText, details);
  mark(false);
  const blank = !translatedText;
  page.empty.hidden = !blank;
  page.emptyText.textContent = text ? "The translation is empty." : "The translation appears here.";
  const example = exampleFor(spoken());
  page.example.hidden = !blank || Boolean(text) || !example;
  const quoted = element("bdi", attributesOf(spoken()), example ?? "");
  page.example.replaceChildren("Try an example: “", quoted, "”");
  page.copy.disabled = blank;
  page.suggest.disabled = !text;
  showFlags(text, details);
}

/** Name likely failures, and what comes from the translation memory. */
function showFlags(text, details) {
  const warnings = Object.keys(FLAGS).map((flag) => [`Please check: ${FLAGS[flag]}`, ({ flags }) => flags.includes(flag)]);
  const sources = Object.keys(MEMORY).map((match) => [MEMORY[match], ({ memory }) => memory?.match === match]);
  list(page.flags, warnings, text, details, (lines) => `lines ${lines.slice(0, FEW).join(", ")}, …`);
  // Each of these lines has a mark.
  list(page.memory, sources, text, details, (lines) => `${lines.length} lines`);
}

/**
 * List the words that apply to some lines of the text, with the numbers of these if the text has several lines, or
 * with what `many` says about many numbers.
 */
function list(place, kinds, text, details, many) {
  const numbers = linesWithText(text);
  place.replaceChildren(...kinds.flatMap(([words, applies]) => {
    const lines = numbers.filter((number, index) => details[index] && applies(details[index]));
    const few = `${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")}`;
    const named = lines.length > FEW ? many(lines) : few;
    const where = numbers.length > 1 ? ` (${named})` : "";
    return lines.length ? [element("li", {}, `${words}${where}.`)] : [];
  }));
  place.hidden = !place.children.length;
}

function busy(words) {
  page.state.textContent = words;
  page.progress.hidden = !words;
}

function wait() {
  busy("Still waiting for the server …");
  announce(page.state.textContent);
}

function settle() {
  clearTimeout(settling);
  if (!page.translation.classList.contains("old")) record(current());
}

/** The text changed: keep it, count it, and translate it soon. */
function edited() {
  running.abort();
  clearTimeout(typing);
  clearTimeout(settling);
  announce("");
  busy("");
  const text = page.text.value, length = [...text].length, limit = settings.charLimit;
  try { session.text = text; } catch { delete session.text; }
  page.mirror.textContent = `${text}\n`; // without a final newline, an empty last line has no height
  mark(true);
  page.suggest.disabled = true; // the translation is not that of the text
  document.body.classList.toggle("long", length > LONG);
  const words = (number) => `${number.toLocaleString("en")} ${number === 1 ? "character" : "characters"}`;
  const left = limit - length, near = limit > 0 && length > NEAR * limit;
  const all = limit > 0 ? `${length.toLocaleString("en")} of ${words(limit)}` : words(length);
  page.count.textContent = near ? `${all} (${left < 0 ? `${words(-left)} too many` : `${left.toLocaleString("en")} left`})` : all;
  page.count.className = left < 0 && limit > 0 ? "over" : near ? "near" : "";
  page.clear.disabled = !length;
  page.example.hidden ||= length > 0; // also while the server is busy, and if it fails
  typing = setTimeout(() => attempt(translate), length > 1000 ? 1000 : 300);
}

async function translate() {
  edited();
  clearTimeout(typing);
  running = new AbortController();
  const { signal } = running, text = page.text.value;
  if (!text.trim() || !page.target.value) return show("", { translatedText: "" });
  if (page.count.className === "over") throw tooLong(text);
  busy("Translating …");
  const slow = setTimeout(wait, 2000);
  try {
    const answer = await ask("translate", question({ q: text, details: true }), signal);
    const { language, confidence } = answer.detectedLanguage ?? {};
    if (language) setDetected(language, confidence);
    show(text, answer);
    announce(page.translation.textContent, tag(page.target.value), 1000);
    settling = setTimeout(settle, SETTLED);
  } catch (error) {
    if (error.lost) typing = setTimeout(tryAgain, 3000);
    if (error.lost || error.seconds) Object.assign(error, { label: "Try now", action: () => attempt(translate) });
    throw error;
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) busy("");
  }
}

function tooLong(text) {
  const error = new Error(`The text is too long: ${page.count.textContent}. Shorten it, or translate it as a file.`);
  if (!settings.filesTranslation) return error;
  const action = () => { notify(""); translateFiles([new File([text], "text.txt", { type: "text/plain" })]); };
  return Object.assign(error, { label: "Translate as a file", action });
}

/** Translate as soon as the server responds again, unless the text is edited first. */
function tryAgain() {
  fetch("health").then(() => attempt(translate), () => { typing = setTimeout(tryAgain, 3000); });
}

function clear() {
  settle();
  page.text.value = "";
  setDetected("");
  attempt(translate);
  announce("Cleared");
  page.text.focus();
}

async function copy() {
  const text = page.translation.textContent;
  const set = (event) => { event.clipboardData.setData("text/plain", text); event.preventDefault(); };
  // Over plain HTTP, navigator.clipboard exists only on localhost.
  document.addEventListener("copy", set, { once: true });
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else if (!document.execCommand("copy")) throw new Error("The browser blocked copying. Select the text and copy it manually.");
  document.removeEventListener("copy", set);
  page.copy.textContent = "Copied";
  announce("Copied");
  settle();
  setTimeout(() => { page.copy.textContent = "Copy"; }, 2000);
}

/** Show the corrections that were saved. */
function showSaved(count) {
  show(shown.text, shown.answer);
  settle();
  page.state.textContent = count > 1 ? `Thank you. ${count} corrected lines were saved.` : "Thank you. The correction was saved.";
  announce(page.state.textContent);
}

function chooseLanguages() {
  setLanguages(page.source.value, page.target.value);
  attempt(translate);
}

function swap() {
  const translated = page.translation.textContent;
  setLanguages(page.target.value, spoken());
  if (translated) page.text.value = translated;
  attempt(translate);
}

/** Translate this text; without languages, keep the chosen ones. */
function put(text, source = page.source.value, target = page.target.value) {
  setLanguages(source, target);
  page.text.value = text;
  attempt(translate);
  page.text.focus();
}

async function start() {
  let languages;
  page.text.value ||= session.text ?? "";
  edited();
  clearTimeout(typing);
  try {
    [languages, settings] = await Promise.all([ask("languages"), ask("frontend/settings")]);
  } catch (error) {
    throw Object.assign(error, { label: "Try now", action: () => attempt(start), seconds: error.seconds ?? 3 });
  }
  offer(languages, settings.language);
  offerFiles(settings);
  const here = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
  const models = settings.models.length > 2 ? `${settings.models.length} models` : settings.models.join(", ");
  const terms = ({ name, terms: count }) => ` · glossary ${name} (${count === 1 ? "1 term" : `${count} terms`})`;
  const glossary = settings.glossary ? terms(settings.glossary) : "";
  page.about.textContent = `${models} · ${pairs()}${glossary} · runs on ${here ? "this machine" : location.hostname}`;
  page.where.textContent = here ? "Your text stays on this machine." : `Your text is sent only to ${location.hostname}.`;
  page.keyField.hidden = !settings.keyRequired;
  page.suggest.hidden = !settings.suggestions;
  page.key.value = session.apiKey ?? "";
  await translate();
}

function chooseTheme() {
  document.documentElement.dataset.theme = page.theme.value;
  if (page.theme.value) local.theme = page.theme.value; else delete local.theme;
}

page.theme.value = local.theme ?? "";
onChoice((text) => { announce(text, tag(page.target.value), 1500); settling = setTimeout(settle, SETTLED); });
onSaved(showSaved);
onReopen(({ text, source, target }) => put(text, source, target));
listen(
  [page.text, "input", () => { notify(""); edited(); }],
  [page.source, "change", chooseLanguages], [page.target, "change", chooseLanguages],
  [page.text, "keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && attempt(translate)],
  [page.swap, "click", swap], [page.clear, "click", clear], [page.copy, "click", () => attempt(copy)],
  [page.example, "click", () => put(exampleFor(spoken()))], [page.theme, "change", chooseTheme],
  [page.suggest, "click", () => openSuggestion({ ...current(), usual: shown.usual, line: selectedLine() })],
  [page.keyField, "submit", (event) => event.preventDefault()],
  [page.key, "change", () => { session.apiKey = page.key.value; attempt(page.target.value ? translate : start); }],
  [window, "pagehide", settle], [window, "online", () => page.retry.hidden || page.retry.click()],
);
attempt(start);
