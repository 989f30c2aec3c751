/** The key of a studio that has one: asked for once, then kept by the browser in a cookie that scripts cannot read. */

import { find } from "./elements.js";

let asking = null;

/** Resolves when the server has taken the key; several callers share one question. */
export function askForKey() {
  asking ??= ask().finally(() => { asking = null; });
  return asking;
}

async function ask() {
  const dialog = find("#key-dialog"), field = find("#key"), trouble = find("#key-trouble");
  for (;;) {
    field.value = "";
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
    if (!field.value) continue;
    const response = await fetch("/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ api_key: field.value }),
    }).catch(() => null);
    trouble.hidden = Boolean(response?.ok);
    if (response?.ok) return;
    trouble.textContent = wrong(response);
  }
}

function wrong(response) {
  if (response?.status === 401) return "That is not the key.";
  if (response?.status !== 429) return "The server does not answer. Try again in a moment.";
  return `Too many tries. Wait ${response.headers.get("Retry-After") ?? 60} seconds, then try again.`;
}
