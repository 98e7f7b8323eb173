// Files: each has a row with its progress and then its result, a download or an error.
import { announce, attempt, element, listen, page } from "./elements.js";
import { question } from "./languages.js";
import { ask } from "./server.js";

let turn = Promise.resolve();
const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

export function offerFiles(served) {
  page.choose.hidden = !served.filesTranslation;
}

/** Translate files one after the other. */
export function translateFiles(files) {
  for (const file of files) {
    const said = element("span", { className: "said" }, "Waiting …"), stop = new AbortController();
    const remove = element("button", { type: "button", className: "plain remove", ariaLabel: `Remove ${file.name}` }, "✕");
    const name = element("span", { className: "file" }, file.name), row = element("li", {}, name, said, remove);
    remove.addEventListener("click", () => {
      stop.abort();
      row.remove();
      page.files.hidden = !page.files.children.length;
      page.choose.focus();
    });
    page.files.append(row);
    page.files.hidden = false;
    row.scrollIntoView({ block: "nearest" });
    const work = () => translateFile(file, row, said, stop.signal);
    turn = turn.then(work);
  }
}

async function translateFile(file, row, said, signal) {
  if (signal.aborted) return;
  const begun = Date.now(), progress = element("progress", { ariaLabel: `Translating ${file.name}` });
  const tick = () => { said.textContent = `Translating ${size(file.size)} … ${Math.round((Date.now() - begun) / 1000)} s`; };
  const ticking = setInterval(tick, 1000);
  row.className = "";
  row.append(progress);
  tick();
  try {
    const form = new FormData();
    for (const [key, value] of Object.entries(question({ file }))) form.append(key, value);
    const { translatedFileUrl, notice } = await ask("translate_file", form, signal);
    // A server behind a proxy may not know its public address, so only the last part (TOKEN.NAME) is used.
    const last = new URL(translatedFileUrl, location).pathname.split("/").pop();
    const name = decodeURIComponent(last.slice(last.indexOf(".") + 1));
    said.textContent = "Translated. The server keeps the file for ten minutes.";
    if (notice) said.textContent += ` Note: ${notice}.`;
    said.before(element("a", { href: `download_file/${last}`, download: name }, `Download ${name}`));
    announce(`${file.name} has been translated. The download link is above the text.`);
  } catch (error) {
    if (error.name === "AbortError") return;
    row.className = "failed";
    said.textContent = error.message;
    announce(error.message.startsWith(file.name) ? error.message : `${file.name}: ${error.message}`);
    const again = element("button", { type: "button" }, "Try again");
    again.addEventListener("click", () => { again.remove(); turn = turn.then(() => translateFile(file, row, said, signal)); });
    if (error.lost || error.seconds) said.after(again);
  } finally {
    clearInterval(ticking);
    progress.remove();
  }
}

function dropped(event) {
  document.body.classList.remove("dropping");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  attempt(translateFiles, [...event.dataTransfer.files]);
}

function dragged(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
}

listen(
  [page.choose, "click", () => page.file.click()],
  [page.file, "change", () => { translateFiles([...page.file.files]); page.file.value = ""; }],
  [document, "dragover", dragged], [document, "drop", dropped],
  [document, "dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping")],
);
