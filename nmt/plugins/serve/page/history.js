// The history of this browser: off by default, and only in the browser's own storage.
import { element, listen, local, page } from "./elements.js";
import { attributesOf, nameOf } from "./languages.js";

const MOST = 100, MOST_CHARACTERS = 1_000_000;
let reopen = () => {};

/** Call a function with an entry that the user reopens. */
export function onReopen(listener) { reopen = listener; }

function entries() {
  try { return JSON.parse(local.history ?? "[]"); } catch { return []; }
}

function save(kept) {
  while (kept.length && JSON.stringify(kept).length > MOST_CHARACTERS) kept.pop();
  if (kept.length) try { local.history = JSON.stringify(kept.slice(0, MOST)); } catch { kept.pop(); }
  else delete local.history;
  draw();
}

/** Keep a translation if the history is on; it replaces the last one if the user only wrote more. */
export function record(entry) {
  if (!local.keepHistory || !entry.text.trim() || !entry.translation.trim()) return;
  const [last, ...older] = entries();
  const grown = last && last.source === entry.source && last.target === entry.target && entry.text.startsWith(last.text);
  save([{ ...entry, time: Date.now() }, ...(last && !grown ? [last] : []), ...older]);
}

function draw() {
  const kept = entries();
  page.keep.checked = Boolean(local.keepHistory);
  page.forget.hidden = !kept.length;
  const rows = kept.map((entry, index) => {
    const when = new Date(entry.time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    const text = (content, lang) => element("span", attributesOf(lang), content.slice(0, 300));
    const about = element("small", {}, `${nameOf(entry.source)} → ${nameOf(entry.target)}, ${when}`);
    const button = element("button", { type: "button", className: "entry" }, text(entry.text, entry.source), text(entry.translation, entry.target), about);
    const remove = element("button", { type: "button", className: "plain remove", ariaLabel: "Delete this translation", title: "Delete" }, "✕");
    button.addEventListener("click", () => { page.history.close(); reopen(entry); });
    remove.addEventListener("click", () => {
      save(entries().filter((_, number) => number !== index));
      (page.entries.querySelectorAll(".remove")[index] ?? page.closeHistory).focus();
    });
    return element("li", {}, button, remove);
  });
  page.entries.replaceChildren(...rows);
}

listen(
  [page.openHistory, "click", () => { draw(); page.history.showModal(); }],
  [page.closeHistory, "click", () => page.history.close()],
  [page.history, "click", (event) => event.target === page.history && page.history.close()],
  [page.keep, "change", () => { if (page.keep.checked) local.keepHistory = "1"; else delete local.keepHistory; }],
  [page.forget, "click", () => { save([]); page.closeHistory.focus(); }],
);
