// The page of `nmt serve`. What anybody wrote reaches the document as text only, never as markup.
import { announce, attempt, listen, page } from "./elements.js";
import { offer, question, session, setDetected, setLanguages, spoken } from "./languages.js";
import { ask, objects } from "./server.js";
import { cut, forget, mirror, showNextLine, translation } from "./words.js";

let settings = { charLimit: -1, supportedFilesFormat: [] };
let running = new AbortController(), reading = new AbortController();
let typing;

function busy(words, share) {
  page.state.textContent = words;
  page.progress.hidden = !words;
  if (share) page.progress.value = share;
  else page.progress.removeAttribute("value");
}

function wait() {
  busy("Waiting for the server: a model that was not in use is loaded first …");
  announce(page.state.textContent);
}

function edited() {
  running.abort();
  clearTimeout(typing);
  announce("");
  busy("");
  mirror(page.text.value);
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
  const { signal } = running, text = page.text.value, total = text.split("\n").length;
  if (!text.trim() || !page.target.value) return cut(0);
  if (page.count.className) throw new Error(`The text has ${page.count.textContent}: shorten it, or give it as a file.`);
  busy("Translating …");
  const slow = setTimeout(wait, 2000);
  try {
    let done = 0;
    const asked = question({ q: text, format: "text", alternatives: 0, details: true, stream: true });
    for await (const part of objects(await ask("translate", asked, signal))) {
      signal.throwIfAborted();
      clearTimeout(slow);
      if (part.error) throw new Error(part.error);
      if (part.detectedLanguage) setDetected(part.detectedLanguage.language, part.detectedLanguage.confidence);
      if (part.line === undefined) continue;
      showNextLine(part.line, part.flags ? { ...part.details, flags: part.flags } : part.details);
      done = part.line + 1;
      if (total > 1) busy(`${done} of ${total} lines`, done / total);
    }
    cut(done);
    announce(translation(), page.target.value, 1000);
  } catch (error) {
    if (error.lost) typing = setTimeout(tryAgain, 3000);
    throw error;
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) busy("");
  }
}

/** Translate when the server answers again, unless the text is edited before. */
function tryAgain() {
  fetch("health").then(() => attempt(translate), () => { typing = setTimeout(tryAgain, 3000); });
}

function clear() {
  reading.abort();
  forget();
  page.text.value = "";
  page.fileState.hidden = true;
  setDetected("");
  attempt(translate);
  announce("Cleared");
  page.text.focus();
}

async function copy() {
  const text = translation();
  const set = (event) => { event.clipboardData.setData("text/plain", text); event.preventDefault(); };
  // Over plain HTTP there is no navigator.clipboard, except on this machine.
  document.addEventListener("copy", set, { once: true });
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else if (!document.execCommand("copy")) throw new Error("The browser did not copy: select the text and copy it.");
  document.removeEventListener("copy", set);
  page.copy.textContent = "Copied";
  announce("Copied");
  setTimeout(() => { page.copy.textContent = "Copy"; }, 2000);
}

// Files

async function translateFile(file) {
  page.fileState.hidden = true;
  const suffixes = settings.filesTranslation ? settings.supportedFilesFormat : [];
  const known = suffixes.some((each) => file.name.toLowerCase().endsWith(each));
  if (!known) throw new Error(`${file.name}: this server translates ${suffixes.join(", ") || "no"} files`);
  reading.abort();
  reading = new AbortController();
  const form = new FormData();
  for (const [key, value] of Object.entries(question({ file }))) form.append(key, value);
  page.fileName.textContent = `Translating ${file.name} …`;
  page.download.hidden = true;
  page.fileState.hidden = page.clear.disabled = false;
  try {
    const { translatedFileUrl } = await (await ask("translate_file", form, reading.signal)).json();
    // A server behind another does not know its own name: only the last part of the address is used, TOKEN.NAME.
    const last = new URL(translatedFileUrl, location).pathname.split("/").pop();
    page.download.href = `download_file/${last}`;
    page.download.download = last.slice(last.indexOf(".") + 1);
    page.download.textContent = `Download ${page.download.download}`;
    page.download.hidden = false;
    page.fileName.textContent = `${file.name} is translated.`;
    announce(`${file.name} is translated, a link to download it follows the translation`);
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
  forget();
  setLanguages(page.source.value, page.target.value);
  attempt(translate);
}

function swap() {
  forget();
  const translated = translation();
  setLanguages(page.target.value, spoken());
  if (translated) page.text.value = translated;
  attempt(translate);
}

async function start() {
  const answers = await Promise.all([ask("languages"), ask("frontend/settings")]);
  const [languages, found] = await Promise.all(answers.map((answer) => answer.json()));
  settings = found;
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
