/** Calls to the service. What goes wrong becomes a Trouble: one line in plain words. */

import { connection } from "./connection.js";
import { askForKey } from "./key.js";

export class Trouble extends Error {
  constructor(message, { status = 0, code = "unreachable", retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { status, code, retryAfter });
  }
}

async function troubleOf(response) {
  const header = Number(response.headers.get("Retry-After"));
  const more = { status: response.status, code: "internal", retryAfter: header > 0 ? header : null };
  try {
    const { error } = await response.json();
    return new Trouble(error.message, { ...more, code: error.code });
  } catch {
    return new Trouble(`The server answered ${response.status}, which it should not. Try again.`, more);
  }
}

/** A good answer. Asks for the key once per refusal. */
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    connection.doubt();
    throw new Trouble("The server does not answer. This page tries again by itself.");
  }
  if (response.status === 401 && path !== "/v1/session") {
    await askForKey();
    return ask(path, options);
  }
  if (!response.ok) throw await troubleOf(response);
  return response;
}

/** JSON in, JSON out; null where the answer has no body. */
export async function call(path, { method = "GET", body } = {}) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await ask(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  return response.status === 204 ? null : response.json();
}

/** The bytes of a file, such as a mesh. */
export async function bytesOf(url) {
  return (await ask(url)).arrayBuffer();
}
