// Requests to the server.
import { page } from "./elements.js";

function lost(error) {
  if (error.name === "AbortError") throw error;
  throw Object.assign(new Error("The server is not responding, or the connection was lost."), { lost: true });
}

/** The server's answer; throws an Error with the server's message. A `body` that is not FormData is sent as JSON. */
export async function ask(path, body, signal) {
  const form = body instanceof FormData;
  const headers = form ? {} : { "Content-Type": "application/json" };
  const post = { method: "POST", headers, body: form ? body : JSON.stringify(body), signal };
  const answer = await fetch(path, body ? post : {}).catch(lost);
  if (answer.ok) return answer.json().catch(lost);
  if (answer.status === 403) page.keyField.hidden = false;
  throw new Error(await answer.json().then((said) => said.error, () => `${answer.status} ${answer.statusText}`));
}
