// The page's elements, the browser's storage, and messages to users. All input and output becomes text, never markup.
const byId = [...document.querySelectorAll("[id]")].map((element) => [element.id, element]);
export const page = Object.fromEntries(byId);
export const local = storage("localStorage"), session = storage("sessionStorage");
let speaking, counting;

/** A browser storage, or a plain object if storage is disabled. */
function storage(name) {
  try { return window[name]; } catch { return {}; }
}

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Add listeners, each given as [element, event, function]. */
export function listen(...listeners) {
  for (const [target, event, listener] of listeners) target.addEventListener(event, listener);
}

/** Show a message with an optional button, which is pressed by itself after some seconds, if these are given. */
export function notify(message, label = "", action = null, seconds = 0) {
  clearInterval(counting);
  page.error.textContent = message;
  page.notice.hidden = !message;
  page.retry.hidden = !label;
  page.retry.onclick = action;
  const show = () => { page.retry.textContent = seconds > 0 ? `${label} (${seconds} s)` : label; };
  show();
  if (seconds > 0) counting = setInterval(() => { seconds -= 1; if (seconds > 0) show(); else action(); }, 1000);
}

/** Run an action and show its error, unless the action was aborted. */
export async function attempt(action, ...values) {
  notify("");
  try {
    await action(...values);
  } catch (error) {
    if (error.name !== "AbortError") notify(error.message, error.label, error.action, error.seconds);
  }
}

/** Announce words to screen readers: at once, or after nothing else has been announced for `patience` milliseconds. */
export function announce(words, language = "en", patience = 0) {
  clearTimeout(speaking);
  speaking = setTimeout(() => Object.assign(page.said, { lang: language, textContent: words }), patience);
}
