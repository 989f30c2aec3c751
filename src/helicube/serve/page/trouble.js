/** What went wrong, in plain words beside the button that caused it; a wait counts down. */

import { find } from "./elements.js";
import { plural } from "./words.js";

let timer = 0;

/** @param trouble an error with a message, or null when all is well. */
export function showTrouble(trouble) {
  clearInterval(timer);
  const line = find("#trouble"), prompt = find("#prompt");
  line.hidden = !trouble;
  line.textContent = trouble?.message ?? "";
  prompt.setAttribute("aria-invalid", String(trouble?.code === "invalid_prompt"));
  if (trouble?.code === "invalid_prompt") prompt.focus();
  if (!trouble?.retryAfter) return;
  const until = Date.now() + 1000 * trouble.retryAfter;
  const tell = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    line.textContent = left > 0 ? `${trouble.message} ${plural(left, "second")} to go.` : "You can try again now.";
    if (left <= 0) clearInterval(timer);
  };
  tell();
  timer = setInterval(tell, 1000);
}
