/** The planner's interactive frontier, for a model and GPUs of one's choice. */

import { find, make } from "./elements.js";
import { bytesOf, call } from "./server.js";

const CONTEXTS = [[8192, "8 k"], [131072, "128 k"], [1000000, "1 M"]];
const POOLS = [8, 16, 32, 64, 72];
let started = false;

const select = (name, label, options, value) =>
  make("label", {}, label, make("select", { name }, ...options.map(([key, text]) => make("option", { value: key, selected: key === value }, String(text)))));

/** Call when the view comes up; asks the server only the first time. */
export async function showPlanner() {
  if (started) return;
  started = true;
  const form = find("#plan-form");
  try {
    const names = await call("/v1/plan/names"), same = (list) => list.map((name) => [name, name]);
    form.replaceChildren(
      select("model", "Model", same(names.models), "deepseek-r1"),
      select("gpu", "GPU", same(names.gpus), "gb200"),
      select("max_gpus", "GPUs, at most", POOLS.map((n) => [n, n]), 64),
      select("context", "Context", CONTEXTS, 1000000),
      make("button", { class: "primary", type: "submit" }, "Plan"),
    );
    find("#plan-trouble").hidden = true;
  } catch (trouble) {
    started = false;
    find("#plan-trouble").textContent = trouble.message;
    find("#plan-trouble").hidden = false;
    return;
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); plan(form); });
  plan(form);
}

async function plan(form) {
  const frame = find("#plan-frame"), button = form.querySelector("button"), trouble = find("#plan-trouble");
  const url = `/plan?${new URLSearchParams(new FormData(form))}`;
  const ready = () => { button.disabled = false; button.textContent = "Plan"; };
  button.disabled = true;
  button.textContent = "Planning";
  trouble.hidden = true;
  try {
    // First by itself: a frame would show what goes wrong as an empty page. The frame then has it from the cache.
    await bytesOf(url);
    frame.hidden = false;
    frame.addEventListener("load", ready, { once: true });
    frame.src = url;
  } catch (error) {
    frame.hidden = true;
    trouble.textContent = error.message;
    trouble.hidden = false;
    ready();
  }
}
