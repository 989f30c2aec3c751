/** The three views; the address remembers which, and arrow keys move between them. */

import { find } from "./elements.js";

const NAMES = ["create", "planner", "engine"];

/** @param onShow called with the name of the view that comes up. */
export function startTabs(onShow) {
  const tab = (name) => find(`#tab-${name}`);
  const show = (name) => {
    for (const each of NAMES) {
      tab(each).setAttribute("aria-selected", String(each === name));
      tab(each).tabIndex = each === name ? 0 : -1;
      find(`#${each}`).hidden = each !== name;
    }
    onShow(name);
  };
  const fromAddress = () => show(NAMES.find((name) => location.hash === `#${name}`) ?? "create");
  for (const [i, name] of NAMES.entries()) {
    tab(name).addEventListener("click", () => { history.replaceState(null, "", `#${name}`); show(name); });
    tab(name).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tab(NAMES[(i + step + NAMES.length) % NAMES.length]);
      next.focus();
      next.click();
    });
  }
  addEventListener("hashchange", fromAddress);
  fromAddress();
}
