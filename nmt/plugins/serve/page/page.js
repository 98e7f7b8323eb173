// The page of `nmt serve`. All input and output enters the document as text, never as markup.
import { announce, attempt, listen, page } from "./elements.js";
import { offer, question, session, setDetected, setLanguages, spoken } from "./languages.js";
import { ask } from "./server.js";

let settings = { charLimit: -1, supportedFilesFormat: [] };
let running = new AbortController(), reading = new AbortController();
let typing;

/** Show a translation, or mark the current one as outdated. */
function show(text, old = false) {
  if (!old) page.translation.textContent = text;
  page.translation.classList.toggle("old", old);
  page.copy.disabled = !page.translation.textContent;
}

function busy(words) {
  page.state.textContent = words;
  page.progress.hidden = !words;
}

function wait() {
  busy("Still waiting for the server …");
  announce(page.state.textContent);
}

function edited() {
  running.abort();
  clearTimeout(typing);
  announce("");
  busy("");
  page.mirror.textContent = `${page.text.value}\n`; // without a final newline, an empty last line has no height
  show("", true);
  const length = [...page.text.value].length, limit = settings.charLimit;
  page.count.textContent = `${length.toLocaleString("en")}${limit > 0 ? ` of ${limit.toLocaleString("en")}` : ""} characters`;
  page.count.classList.toggle("over", limit > 0 && length > limit);
  page.clear.disabled = !length && page.fileState.hidden;
  typing = setTimeout(() => attempt(translate), length > 1000 ? 1000 : 300);
}

async function translate() {
  edited();
  clearTimeout(typing);
  running = new AbortController();
  const { signal } = running, text = page.text.value;
  if (!text.trim() || !page.target.value) return show("");
  if (page.count.className) throw new Error(`The text is too long (${page.count.textContent}). Shorten it, or upload it as a file.`);
  busy("Translating …");
  const slow = setTimeout(wait, 2000);
  try {
    const answer = await ask("translate", question({ q: text }), signal);
    const { language, confidence } = answer.detectedLanguage ?? {};
    if (language) setDetected(language, confidence);
    show(answer.translatedText);
    announce(answer.translatedText, page.target.value, 1000);
  } catch (error) {
    if (error.lost) typing = setTimeout(tryAgain, 3000);
    throw error;
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) busy("");
  }
}

/** Translate as soon as the server responds again, unless the text is edited first. */
function tryAgain() {
  fetch("health").then(() => attempt(translate), () => { typing = setTimeout(tryAgain, 3000); });
}

function clear() {
  reading.abort();
  page.text.value = "";
  page.fileState.hidden = true;
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
  setTimeout(() => { page.copy.textContent = "Copy"; }, 2000);
}

// Files

async function translateFile(file) {
  page.fileState.hidden = true;
  const suffixes = settings.filesTranslation ? settings.supportedFilesFormat : [];
  const served = suffixes.some((suffix) => file.name.toLowerCase().endsWith(suffix));
  if (!served) throw new Error(`${file.name}: unsupported file type. This server translates ${suffixes.join(", ") || "no"} files.`);
  reading.abort();
  reading = new AbortController();
  const form = new FormData();
  for (const [key, value] of Object.entries(question({ file }))) form.append(key, value);
  page.fileName.textContent = `Translating ${file.name} …`;
  page.download.hidden = true;
  page.fileState.hidden = page.clear.disabled = false;
  try {
    const { translatedFileUrl } = await ask("translate_file", form, reading.signal);
    // A server behind a proxy may not know its public address, so only the last part (TOKEN.NAME) is used.
    const last = new URL(translatedFileUrl, location).pathname.split("/").pop();
    page.download.href = `download_file/${last}`;
    page.download.download = last.slice(last.indexOf(".") + 1);
    page.download.textContent = `Download ${page.download.download}`;
    page.download.hidden = false;
    page.fileName.textContent = `${file.name} has been translated.`;
    announce(`${file.name} has been translated. The download link is below the translation.`);
  } catch (error) {
    page.fileState.hidden = true;
    throw error;
  }
}

function dropped(event) {
  document.body.classList.remove("dropping");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  attempt(translateFile, event.dataTransfer.files[0]);
}

function dragged(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
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

async function start() {
  let languages;
  [languages, settings] = await Promise.all([ask("languages"), ask("frontend/settings")]);
  offer(languages, settings.language);
  page.keyField.hidden = !settings.keyRequired;
  page.choose.hidden = !settings.filesTranslation;
  page.file.accept = settings.supportedFilesFormat.join();
  page.key.value = session.apiKey ?? "";
  await translate();
}

listen(
  [page.text, "input", edited], [page.source, "change", chooseLanguages], [page.target, "change", chooseLanguages],
  [page.text, "keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && attempt(translate)],
  [page.swap, "click", swap], [page.clear, "click", clear], [page.copy, "click", () => attempt(copy)],
  [page.keyField, "submit", (event) => event.preventDefault()],
  [page.key, "change", () => { session.apiKey = page.key.value; attempt(page.target.value ? translate : start); }],
  [page.choose, "click", () => page.file.click()],
  [page.file, "change", () => { attempt(translateFile, page.file.files[0]); page.file.value = ""; }],
  [document, "dragover", dragged], [document, "drop", dropped],
  [document, "dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping")],
);
attempt(start);
