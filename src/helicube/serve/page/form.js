/** The prompt and its settings; "request" is what the server gets. */

import { find, make } from "./elements.js";
import { Slider } from "./slider.js";
import { keep, kept } from "./storage.js";
import { count, few, length } from "./words.js";

const IDEAS = ["a red wooden chair", "a round oak table", "a desk lamp", "a blue sofa", "a small rowing boat", "a park bench"];
const MOST_VARIANTS = 4;

export class Form {
  /** @param settings the answer of GET /v1/settings. */
  constructor(settings) {
    const { limits, defaults } = settings;
    this.prompt = find("#prompt");
    this.boxRatio = limits.box_ratio;
    this.prompt.maxLength = limits.prompt_chars;
    this.seed = find("#seed");
    this.seed.max = limits.seed[1];
    this.#segments("#variants", "variants", Array.from({ length: Math.min(MOST_VARIANTS, limits.variants) }, (_, i) => [i + 1, i + 1]));
    this.#segments("#quality", "quality", Object.keys(settings.qualities).map((name) => [name, name[0].toUpperCase() + name.slice(1)]));
    this.#sliders(limits, defaults);
    this.#ideas();
    find("#dice").addEventListener("click", () => { this.seed.value = Math.floor(Math.random() * 1e6); this.#keep(); });
    find("#form").addEventListener("change", () => this.#changed());
    const first = { variants: defaults.variants, quality: defaults.quality, seed: defaults.seed };
    this.set(first);
    try {
      this.set(before());
    } catch {
      // Kept by another version, or by hand.
      this.set({ ...first, box: null });
    }
  }

  get request() {
    const values = Object.fromEntries(Object.entries(this.sliders).map(([name, slider]) => [name, slider.value]));
    const box = this.#radio("shape") === "box" ? [values.width, values.height, values.depth] : null;
    return {
      prompt: this.prompt.value.trim(),
      seed: Number(this.seed.value || 0),
      variants: Number(this.#radio("variants")),
      quality: this.#radio("quality"),
      box,
      size_m: box ? Math.max(...box) : values.size_m,
      max_triangles: values.max_triangles,
      best_of: values.best_of,
      guidance: values.guidance,
      temperature: values.temperature,
      top_p: values.top_p,
    };
  }

  /** What would be wrong with the request: a message in plain words and a code, or null. */
  get fault() {
    const invalid = (message, code = "invalid_request") => ({ message, code });
    if (!this.prompt.value.trim()) return invalid("Type what it should be, such as “a red wooden chair”.", "invalid_prompt");
    if (!this.seed.checkValidity()) return invalid(`The seed ${this.seed.value} is not a whole number from 0 to ${this.seed.max}.`);
    const { box } = this.request, ratio = box ? Math.max(...box) / Math.min(...box) : 1;
    if (ratio > this.boxRatio) return invalid(`The box is ${few(ratio)} times as long as it is thin; at most ${this.boxRatio} times can be made.`);
    return null;
  }

  /** Take over settings: of a request, of an object, or as kept before. */
  set(values) {
    if (values.prompt !== undefined) this.prompt.value = values.prompt;
    if (values.seed !== undefined) this.seed.value = values.seed;
    for (const name of ["variants", "quality"])
      if (values[name] !== undefined) this.#check(name, String(values[name]));
    if (values.box !== undefined) this.#check("shape", values.box ? "box" : "free");
    if (values.box) {
      const scale = (values.size_m ?? 1) / Math.max(...values.box);
      ["width", "height", "depth"].forEach((name, axis) => { this.sliders[name].value = values.box[axis] * scale; });
    }
    for (const name of ["size_m", "max_triangles", "best_of", "guidance", "temperature", "top_p"])
      if (values[name] !== undefined && this.sliders[name]) this.sliders[name].value = values[name];
    this.#changed();
  }

  #sliders(limits, defaults) {
    const metres = { log: true, min: 0.05, max: 5, show: length };
    const all = {
      size_m: { ...metres, label: "Longest side", value: null, auto: "model's own" },
      width: { ...metres, label: "Width", value: 1 },
      height: { ...metres, label: "Height", value: 1 },
      depth: { ...metres, label: "Depth", value: 1 },
      max_triangles: { log: true, label: "Triangles, at most", min: Math.max(100, limits.triangles[0]), max: limits.triangles[1],
        value: defaults.max_triangles, show: count },
      best_of: { label: "Best of", min: 1, max: limits.best_of, step: 1, value: defaults.best_of, show: (value) => (value === 1 ? "one try" : `${value} tries`),
        hint: "The soundest of them is kept" },
      guidance: { label: "Guidance", min: 0, max: 10, step: 0.25, value: defaults.guidance, show: few, hint: "How closely to follow the prompt" },
      temperature: { label: "Temperature", min: 0, max: 1.5, step: 0.05, value: null, auto: "automatic", show: few, hint: "0 always gives the likeliest shape" },
      top_p: { label: "Top-p", min: 0.05, max: 1, step: 0.05, value: defaults.top_p, show: few, hint: "Leaves out unlikely tokens" },
    };
    this.sliders = {};
    for (const [name, options] of Object.entries(all)) {
      this.sliders[name] = new Slider({ name, ...options });
      find(["guidance", "temperature", "top_p"].includes(name) ? "#more" : "#sliders").append(this.sliders[name].element);
    }
  }

  #segments(place, name, options) {
    find(place).replaceChildren(...options.map(([value, text]) =>
      make("label", {}, make("input", { type: "radio", name, value }), make("span", {}, String(text)))));
  }

  #ideas() {
    find("#ideas").replaceChildren(...IDEAS.map((text) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => { this.prompt.value = text; find("#form").requestSubmit(); });
      return button;
    }));
  }

  #radio(name) {
    return document.querySelector(`input[name="${name}"]:checked`)?.value;
  }

  #check(name, value) {
    const radio = document.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`);
    if (radio) radio.checked = true;
  }

  #changed() {
    const box = this.#radio("shape") === "box";
    this.sliders.size_m.element.hidden = box;
    for (const name of ["width", "height", "depth"]) this.sliders[name].element.hidden = !box;
    this.#keep();
  }

  #keep() {
    const { prompt, ...rest } = this.request;
    keep("settings", JSON.stringify(rest));
  }
}

/** The settings of the last visit, if there are any and they can be read. */
function before() {
  try {
    const values = JSON.parse(kept("settings")) ?? {}, { box } = values;
    const sound = box === null || (box?.length === 3 && box.every((side) => side > 0));
    return sound ? values : { ...values, box: undefined };
  } catch {
    return {};
  }
}
