// Draws /openapi.json: each route, its fields, and a command that asks it.
import { attempt, element, page } from "./elements.js";
import { ask } from "./server.js";

function type(schema) {
  if (schema.anyOf) return schema.anyOf.map(type).filter((name) => name !== "null").join(" or ");
  if (schema.const) return JSON.stringify(schema.const);
  return schema.items ? `list of ${type(schema.items)}` : schema.type;
}

function row(name, schema, required) {
  const given = "default" in schema && schema.default !== null ? `, ${JSON.stringify(schema.default)} if left out` : "";
  const cells = [element("code", {}, name), type(schema) + (required ? ", needed" : given), schema.description ?? ""];
  return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
}

function example(path, method, kind, fields) {
  const url = new URL(path.slice(1), location); // behind a prefix, too
  if (method === "get") return `curl ${url}`;
  const values = Object.entries(fields).filter(([, schema]) => schema.examples);
  if (kind.startsWith("multipart")) return `curl -F file=@notes.txt -F source=en -F target=de ${url}`;
  return `curl ${values.map(([name, schema]) => `-d ${name}=${JSON.stringify(schema.examples[0])} `).join("")}${url}`;
}

function route(path, method, described) {
  const [kind, content] = Object.entries(described.requestBody?.content ?? {})[0] ?? ["", { schema: {} }];
  const { properties = {}, required = [] } = content.schema;
  const rows = Object.entries(properties).map(([name, schema]) => row(name, schema, required.includes(name)));
  return element(
    "section", {},
    element("h2", {}, `${method.toUpperCase()} ${path}`),
    element("p", {}, described.description ?? ""),
    element("table", {}, ...rows),
    element("pre", { tabIndex: 0 }, example(path, method, kind, properties)),
  );
}

attempt(async () => {
  const { paths } = await (await ask("openapi.json")).json();
  for (const [path, methods] of Object.entries(paths)) {
    page.routes.append(...Object.entries(methods).map(([method, described]) => route(path, method, described)));
  }
});
