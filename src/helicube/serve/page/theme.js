/** Dark or light: the system's choice until the button is used. */

import { find } from "./elements.js";
import { keep, kept } from "./storage.js";

const system = matchMedia("(prefers-color-scheme: dark)");

function apply(theme) {
  document.documentElement.dataset.theme = theme;
  find("#theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
  dispatchEvent(new Event("theme"));
}

export function startTheme() {
  apply(document.documentElement.dataset.theme);
  system.addEventListener("change", () => kept("theme") || apply(system.matches ? "dark" : "light"));
  find("#theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    keep("theme", next);
    apply(next);
  });
}

/** The value of a custom property of the present theme. */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
