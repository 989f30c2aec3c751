/** The page's parts, put together. */

import { connection } from "./connection.js";
import { find } from "./elements.js";
import { showEngine } from "./engine.js";
import { Form } from "./form.js";
import { Gallery } from "./gallery.js";
import { showPlanner } from "./planner.js";
import { call } from "./server.js";
import { Stage } from "./stage.js";
import { startTabs } from "./tabs.js";
import { startTheme } from "./theme.js";
import { showTrouble } from "./trouble.js";
import { length } from "./words.js";
import { Workshop } from "./workshop.js";

async function settingsOfServer() {
  for (;;) {
    try {
      return await call("/v1/settings");
    } catch (trouble) {
      showTrouble(trouble);
      await new Promise((resolve) => setTimeout(resolve, 500));
      await connection.back();
    }
  }
}

function startTools(stage) {
  const grid = find('[data-tool="grid"]');
  const label = () => { grid.textContent = `Grid ${length(stage.gridCell)}`; };
  stage.addEventListener("home", label);
  label();
  for (const button of document.querySelectorAll("[data-tool]"))
    button.addEventListener("click", () => {
      const tool = button.dataset.tool;
      if (tool === "home") stage.home();
      else button.setAttribute("aria-pressed", String(stage.toggle(tool)));
      if (tool === "figure") stage.home();
    });
}

/** Whether Escape means the job: in the form or on the stage, and not what closes a dialog, a list or a word being composed. */
function stops({ target, isComposing, defaultPrevented }) {
  if (isComposing || defaultPrevented || find("#key-dialog").open || find("#create").hidden) return false;
  return target === document.body || Boolean(target.closest("#prompt, .actions, #stage"));
}

function startKeys(workshop) {
  find("#prompt").addEventListener("keydown", (event) => {
    // Enter ends a word that is being composed, as in Japanese; that is not a press of Generate.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    find("#form").requestSubmit();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && stops(event)) workshop.stop();
  });
}

async function start() {
  const narrow = matchMedia("(max-width: 820px)");
  const fold = () => { find("#settings").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  startTheme();
  connection.start();
  startTabs((name) => { if (name === "planner") showPlanner(); showEngine(name === "engine"); });
  const form = new Form(await settingsOfServer());
  showTrouble(null);
  const stage = new Stage(), gallery = new Gallery(stage), workshop = new Workshop(form, stage, gallery);
  startTools(stage);
  startKeys(workshop);
  find("#form").addEventListener("submit", (event) => { event.preventDefault(); workshop.generate(); });
  find("#cancel").addEventListener("click", () => workshop.stop());
  connection.addEventListener("back", () => gallery.load());
  find("#generate").disabled = false;
  if (!narrow.matches) form.prompt.focus();
  await gallery.load();
  await workshop.resume();
  document.body.dataset.ready = "true";
}

start();
