// The page's elements, and its messages to users.
const byId = [...document.querySelectorAll("[id]")].map((element) => [element.id, element]);
export const page = Object.fromEntries(byId);
let speaking;

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Add listeners, each given as [element, event, function]. */
export function listen(...listeners) {
  for (const [target, event, listener] of listeners) target.addEventListener(event, listener);
}

/** Run an action and show its error, unless the action was aborted. */
export async function attempt(action, ...values) {
  page.error.textContent = "";
  try {
    await action(...values);
  } catch (error) {
    if (error.name !== "AbortError") page.error.textContent = error.message;
  }
}

/** Announce words to screen readers: at once, or after nothing else has been announced for `patience` milliseconds. */
export function announce(words, language = "en", patience = 0) {
  clearTimeout(speaking);
  speaking = setTimeout(() => Object.assign(page.said, { lang: language, textContent: words }), patience);
}
