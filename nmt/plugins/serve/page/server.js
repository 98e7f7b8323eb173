// Talking with the server.
import { page } from "./elements.js";

function lost(error) {
  if (error.name === "AbortError") throw error;
  throw Object.assign(new Error("The server does not answer, or its answer was cut off."), { lost: true });
}

/** The server's answer; an Error with its own words if it refuses. A body is a form, or is sent as JSON. */
export async function ask(path, body, signal) {
  const form = body instanceof FormData;
  const headers = form ? {} : { "Content-Type": "application/json" };
  const post = { method: "POST", headers, body: form ? body : JSON.stringify(body), signal };
  const answer = await fetch(path, body ? post : {}).catch(lost);
  if (answer.ok) return answer.json().catch(lost);
  if (answer.status === 403) page.keyField.hidden = false;
  throw new Error(await answer.json().then((said) => said.error, () => `${answer.status} ${answer.statusText}`));
}
