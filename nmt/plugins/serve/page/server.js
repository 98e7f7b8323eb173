// Requests to the server.
import { page } from "./elements.js";

function lost(error) {
  if (error.name === "AbortError") throw error;
  throw Object.assign(new Error("The server is not responding, or the connection was lost. Your text is kept."), { lost: true });
}

/** What the server says, as a sentence. */
// A message that begins with the name of a file keeps the name as it is.
const sentence = (said) => {
  const first = /^[\w-]+\.\w+:/.test(said) ? said.charAt(0) : said.charAt(0).toUpperCase();
  return first + said.slice(1) + (/[.!?]$/.test(said) ? "" : ".");
};

/**
 * The server's answer to a `body` that is a form or becomes JSON. Throws an Error with the server's message; if the
 * server is busy, `seconds` is how long to wait.
 */
export async function ask(path, body, signal) {
  const form = body instanceof FormData;
  const headers = form ? {} : { "Content-Type": "application/json" };
  const post = { method: "POST", headers, body: form ? body : JSON.stringify(body), signal };
  const answer = await fetch(path, body ? post : {}).catch(lost);
  if (answer.ok) return answer.json().catch(lost);
  if (answer.status === 403 && path !== "suggest") page.keyField.hidden = false;
  const said = await answer.json().then((content) => content.error, () => `${answer.status} ${answer.statusText}`);
  const busy = [429, 503].includes(answer.status);
  const message = sentence(busy ? `the server is busy: ${said.split(";")[0]}` : said);
  throw Object.assign(new Error(message), busy && { seconds: Number(answer.headers.get("Retry-After")) || 5 });
}
