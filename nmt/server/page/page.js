// The page of `nmt serve`. What anybody wrote reaches the document as text only, never as markup.
const page = Object.fromEntries([...document.querySelectorAll("[id]")].map((element) => [element.id, element]));
const remembered = storage("localStorage");
const session = storage("sessionStorage");
const UNSURE = 0.5; // the legend has this number too
const SOURCE = 0, TARGET = 1; // the order of a pair in an alignment
// Of a blank line the server has no details, and of one that is in the target language already, no words.
const BLANK = { source: "", translation: "", words: [], sourceWords: [], alignment: [], confidence: [], indent: "" };
let languages = [], settings = { charLimit: -1, supportedFilesFormat: [] };
let detected = "";
let lines = []; // of each line, what the server said of it and the elements of its words on both sides
let rest; // the part of the mirror behind the lines that were found in it
let running = new AbortController(), asking = new AbortController(), reading = new AbortController();
let typing, speaking;

/** The storage of that name, or an object that is forgotten where the browser stores nothing. */
function storage(name) {
  try { return window[name]; } catch { return {}; }
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Talking with the server

function lost(error) {
  throw error.name === "AbortError" ? error : new Error("The server does not answer, or its answer was cut off.");
}

/** The server's answer; an Error with its own words if it refuses. A body is a form, or is sent as JSON. */
async function ask(path, body, signal) {
  const form = body instanceof FormData;
  const headers = form ? {} : { "Content-Type": "application/json" };
  const post = { method: "POST", headers, body: form ? body : JSON.stringify(body), signal };
  const answer = await fetch(path, body ? post : {}).catch(lost);
  if (answer.ok) return answer;
  if (answer.status === 403) page.keyField.hidden = false;
  const problem = await answer.json().then((said) => said.error, () => `${answer.status} ${answer.statusText}`);
  const pause = answer.headers.get("Retry-After");
  throw new Error(pause ? `${problem} (again in ${pause} s)` : problem);
}

/** The objects of an answer that has one in each line, as they arrive. */
async function* objects(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let held = "", over = false; !over;) {
    const { done, value = "" } = await reader.read().catch(lost);
    const pieces = (held + value).split("\n");
    held = done ? "" : pieces.pop();
    over = done;
    for (const piece of pieces) if (piece) yield JSON.parse(piece);
  }
}

/** Do something; if it fails, say why, unless it was given up. */
async function attempt(action, ...values) {
  page.error.textContent = "";
  try {
    await action(...values);
  } catch (error) {
    if (error.name !== "AbortError") page.error.textContent = error.message;
  }
}

function question(more) {
  return { source: page.source.value, target: page.target.value, ...(session.apiKey && { api_key: session.apiKey }), ...more };
}

// Languages

const nameOf = (code) => languages.find((each) => each.code === code)?.name ?? code;
const targetsOf = (code) => languages.find((each) => each.code === code)?.targets ?? [];
const spoken = () => (page.source.value === "auto" ? detected : page.source.value);

function fill(select, codes, wanted) {
  select.replaceChildren(...codes.map((code) => new Option(code === "auto" ? "Detect language" : nameOf(code), code)));
  if (codes.includes(wanted)) select.value = wanted;
}

function setLanguages(source, target) {
  const sources = languages.filter((each) => each.targets.length).map((each) => each.code);
  fill(page.source, ["auto", ...sources], source);
  const reachable = page.source.value === "auto" ? sources.flatMap(targetsOf) : targetsOf(page.source.value);
  fill(page.target, [...new Set(reachable)], target);
  [remembered.source, remembered.target] = [page.source.value, page.target.value];
  setDetected("");
}

function setDetected(code) {
  detected = code;
  page.source.options[0].text = code && page.source.value === "auto" ? `Detected: ${nameOf(code)}` : "Detect language";
  page.text.lang = spoken();
  page.translation.lang = page.target.value;
  page.swap.disabled = !targetsOf(page.target.value).includes(spoken());
}

function chooseLanguages() {
  setLanguages(page.source.value, page.target.value);
  attempt(translate);
}

function swap() {
  const translated = translation();
  setLanguages(page.target.value, spoken());
  if (translated) page.text.value = translated;
  attempt(translate);
}

// Words and lines

const translation = () => lines.map((line) => line.indent + line.translation).join("\n");

/** The parts of a line, which begins at `first`: its `words`, which stand in it in this order, and what is between. */
function parts(line, words, number, first) {
  let end = 0;
  const found = words.flatMap((word, index) => {
    const begin = line.indexOf(word, end), between = line.slice(end, begin);
    end = begin + word.length;
    const place = { number, index, start: first + begin, end: first + end };
    return [between, element("span", { className: "word", textContent: word, place })];
  });
  return [...found, line.slice(end)];
}

const elementsOf = (found) => found.filter((part) => part instanceof Element);

/** Show a line's translation in the place of the one before; `sources` are the elements of its source's words. */
function showLine(number, details, sources) {
  const found = parts(details.translation, details.words, number, 0), targets = elementsOf(found);
  const row = element("div", { dir: "auto" }, details.indent, ...found);
  for (const [index, word] of targets.entries()) {
    Object.assign(word, { role: "button", tabIndex: -1, ariaHasPopup: "menu" });
    const confidence = details.confidence[index] ?? null; // of a word that was copied, the server has none
    word.title = confidence === null ? "" : `Probability ${Math.round(100 * confidence)} %`;
    word.classList.toggle("unsure", confidence !== null && confidence < UNSURE);
  }
  page.translation.children[number]?.replaceWith(row);
  if (!row.isConnected) page.translation.append(row);
  lines[number] = { ...details, elements: [sources, targets] };
  finishWords();
}

/** Show the line whose source comes next in the text; the server has left out the white space around it. */
function showNextLine(number, details) {
  const before = rest.data.slice(0, rest.data.indexOf(details.source));
  const start = page.text.value.length + 1 - rest.length + before.length;
  const found = parts(details.source, details.sourceWords, number, start);
  rest.before(before, ...found);
  rest.deleteData(0, before.length + details.source.length);
  showLine(number, { ...details, indent: before.split("\n").pop() }, elementsOf(found));
}

/** One of the words is a tab stop, and the legend is there if it is needed. */
function finishWords() {
  const first = page.translation.querySelector(".word");
  if (first && !page.translation.querySelector("[tabindex='0']")) first.tabIndex = 0;
  page.legend.hidden = !page.translation.querySelector(".unsure");
  page.copy.disabled = !lines.length;
}

function highlight(word, side) {
  if (!word && page.menu.matches(":popover-open")) return; // the word whose menu is open stays marked
  for (const each of document.querySelectorAll(".aligned")) each.classList.remove("aligned");
  if (!word) return;
  const { alignment, elements } = lines[word.place.number], other = 1 - side;
  word.classList.add("aligned");
  for (const pair of alignment) {
    if (pair[side] === word.place.index) elements[other][pair[other]].classList.add("aligned");
  }
}

// Translating

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

/** Tell screen readers: at once, or when nobody has typed for a while. */
function announce(words, language = "en", patience = 0) {
  clearTimeout(speaking);
  speaking = setTimeout(() => Object.assign(page.said, { lang: language, textContent: words }), patience);
}

/** Keep the lines up to a number of them. */
function cut(count) {
  lines.length = Math.min(lines.length, count);
  while (page.translation.children.length > count) page.translation.lastChild.remove();
  finishWords();
}

function edited() {
  running.abort();
  clearTimeout(typing);
  clearTimeout(speaking);
  busy("");
  rest = document.createTextNode(`${page.text.value}\n`); // without the last newline, an empty last line has no height
  page.mirror.replaceChildren(rest);
  for (const row of page.translation.children) row.className = "old";
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
      if (part.detectedLanguage) setDetected(part.detectedLanguage.language);
      if (part.line === undefined) continue;
      showNextLine(part.line, { ...BLANK, ...part.details });
      done = part.line + 1;
      if (total > 1) busy(`${done} of ${total} lines`, done / total);
    }
    cut(done);
    announce(translation(), page.target.value, 1000);
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) busy("");
  }
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
  const suffixes = settings.filesTranslation ? settings.supportedFilesFormat : [];
  const suffix = suffixes.find((each) => file.name.toLowerCase().endsWith(each));
  if (!suffix) throw new Error(`${file.name}: this server translates ${suffixes.join(", ") || "no"} files`);
  reading.abort();
  reading = new AbortController();
  const form = new FormData(), asked = question({ file });
  for (const [key, value] of Object.entries(asked)) form.append(key, value);
  page.fileName.textContent = `Translating ${file.name} …`;
  page.download.hidden = true;
  page.fileState.hidden = page.clear.disabled = false;
  try {
    const { translatedFileUrl } = await (await ask("translate_file", form, reading.signal)).json();
    // A server behind another does not know its own name: only the last part of the address is used.
    page.download.href = `download_file/${new URL(translatedFileUrl, location).pathname.split("/").pop()}`;
    page.download.download = `${file.name.slice(0, -suffix.length)}.${asked.target}${suffix}`;
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

// Alternatives at a word

/** Put the menu below a word, or above it where there is no room, as far as it fits. */
function placeMenu(word) {
  const at = word.getClientRects()[0], { width, height } = page.menu.getBoundingClientRect();
  const top = at.bottom + 4 + height > innerHeight ? Math.max(8, at.top - height - 4) : at.bottom + 4;
  page.menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  page.menu.style.top = `${scrollY + top}px`;
}

async function openMenu(word) {
  const line = lines[word.place.number], before = line.translation.slice(0, word.place.start).trimEnd();
  page.menu.replaceChildren(element("p", { textContent: "Looking for alternatives …" }));
  page.menu.showPopover();
  placeMenu(word);
  page.menu.focus();
  asking = new AbortController();
  try {
    const asked = question({ q: line.source, source: spoken(), before, count: 6 });
    const { alternatives } = await (await ask("alternatives", asked, asking.signal)).json();
    const nothing = element("p", { textContent: "There is no other word here." });
    page.menu.replaceChildren(...(alternatives.length ? alternatives.map((each) => item(word, line, each)) : [nothing]));
    placeMenu(word);
    (page.menu.querySelector("button") ?? page.menu).focus();
  } catch (error) {
    page.menu.hidePopover();
    throw error;
  }
}

function item(word, line, { word: other, translation, probability }) {
  const share = element("span", { textContent: `${(100 * probability).toFixed(probability < 0.1 ? 1 : 0)} %` });
  const made = element("button", { type: "button", role: "menuitemradio", tabIndex: -1 });
  made.append(element("bdi", { textContent: other, lang: page.target.value }), share);
  made.ariaChecked = String(translation === line.translation);
  made.addEventListener("click", () => choose(word.place, line, translation));
  return made;
}

/** Replace a line's translation by one that is the same before a word; of the words from there on nothing is known. */
function choose({ number, index }, line, chosen) {
  page.menu.hidePopover();
  const alignment = line.alignment.filter((pair) => pair[TARGET] < index);
  const known = { alignment, confidence: line.confidence.slice(0, index), words: chosen.split(/\s+/).filter(Boolean) };
  if (chosen !== line.translation) showLine(number, { ...line, ...known, translation: chosen }, line.elements[SOURCE]);
  lines[number].elements[TARGET][index].focus();
  announce(chosen, page.target.value);
}

// Keys

/** Move the focus from one of `elements` to its neighbour; true if `key` is one that moves. */
function move(elements, from, key, back, forward) {
  const last = elements.length - 1, at = elements.indexOf(from);
  const to = { [back]: Math.max(at - 1, 0), [forward]: Math.min(at + 1, last), Home: 0, End: last }[key];
  elements[to]?.focus();
  return to !== undefined;
}

function keyOnWord(event) {
  const word = event.target.closest(".word");
  if (!word) return;
  const arrows = getComputedStyle(word).direction === "rtl" ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  const firsts = lines.map((line) => line.elements[TARGET][0] ?? []).flat();
  const words = [...page.translation.querySelectorAll(".word")];
  if (event.key === "Enter" || event.key === " ") attempt(openMenu, word);
  else if (event.key.startsWith("Arrow") && !arrows.includes(event.key)) {
    move(firsts, lines[word.place.number].elements[TARGET][0], event.key, "ArrowUp", "ArrowDown");
  } else if (!move(words, word, event.key, ...arrows)) return;
  event.preventDefault();
}

function keyInMenu(event) {
  if (event.key === "Tab") page.menu.hidePopover();
  else if (!move([...page.menu.querySelectorAll("button")], event.target, event.key, "ArrowUp", "ArrowDown")) return;
  event.preventDefault();
}

function focused(event) {
  const word = event.target.closest(".word");
  for (const each of page.translation.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
  word.tabIndex = 0;
  highlight(word, TARGET);
}

function pointedInSource(event) {
  const below = document.elementsFromPoint(event.clientX, event.clientY);
  highlight(below.find((each) => each.matches("#mirror .word")), SOURCE);
}

function caretMoved() {
  if (document.activeElement !== page.text) return;
  const at = page.text.selectionEnd, words = [...page.mirror.querySelectorAll(".word")];
  highlight(words.find((word) => word.place.start <= at && at <= word.place.end), SOURCE);
}

async function start() {
  const answers = await Promise.all([ask("languages"), ask("frontend/settings")]);
  [languages, settings] = await Promise.all(answers.map((answer) => answer.json()));
  const usual = settings.language;
  setLanguages(remembered.source ?? usual.source.code, remembered.target ?? usual.target.code);
  page.keyField.hidden = !settings.keyRequired;
  page.choose.hidden = !settings.filesTranslation;
  page.file.accept = settings.supportedFilesFormat.join();
  page.key.value = session.apiKey ?? "";
  await translate();
}

const listeners = [
  [page.text, "input", edited], [page.source, "change", chooseLanguages], [page.target, "change", chooseLanguages],
  [page.text, "keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && attempt(translate)],
  [page.swap, "click", swap], [page.clear, "click", clear], [page.copy, "click", () => attempt(copy)],
  [page.keyField, "submit", (event) => event.preventDefault()],
  [page.key, "change", () => { session.apiKey = page.key.value; attempt(languages.length ? translate : start); }],
  [page.choose, "click", () => page.file.click()],
  [page.file, "change", () => { attempt(translateFile, page.file.files[0]); page.file.value = ""; }],
  [document, "dragover", dragged], [document, "drop", dropped],
  [document, "dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping")],
  [page.translation, "click", ({ target }) => getSelection().isCollapsed && target.matches(".word") && attempt(openMenu, target)],
  [page.translation, "keydown", keyOnWord], [page.translation, "focusin", focused],
  [page.translation, "mouseover", (event) => highlight(event.target.closest(".word"), TARGET)],
  [page.translation, "mouseleave", () => highlight()], [page.translation, "focusout", () => highlight()],
  [page.text, "mousemove", pointedInSource], [page.text, "mouseleave", () => highlight()],
  [document, "selectionchange", caretMoved],
  [page.menu, "keydown", keyInMenu], [page.menu, "toggle", (event) => event.newState === "closed" && asking.abort()],
];
for (const [target, event, listener] of listeners) target.addEventListener(event, listener);
attempt(start);
