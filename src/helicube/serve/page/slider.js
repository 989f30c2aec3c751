/** A labelled slider: linear or logarithmic, and optionally with "automatic" at its left end (value null). */

import { make } from "./elements.js";

const STEPS = 240;

export class Slider {
  /** @param {{name: string, label: string, min: number, max: number, value: ?number, log?: boolean, step?: number, auto?: string, hint?: string, show?: (v: number) => string}} options */
  constructor(options) {
    this.options = options;
    const { min, max, log, step, auto } = options;
    // Each press of an arrow key is one of them.
    this.steps = log || auto ? STEPS : Math.round((max - min) / step);
    const id = `slider-${options.name}`;
    this.input = make("input", { type: "range", id, min: options.auto ? -4 : 0, max: this.steps, step: 1 });
    this.output = make("output", { for: id });
    this.element = make("div", { class: "slider" }, make("label", { for: id }, options.label), this.output, this.input,
      options.hint ? make("p", { class: "help hint" }, options.hint) : null);
    this.input.addEventListener("input", () => this.#read());
    this.value = options.value;
  }

  get value() { return this.current; }

  set value(value) {
    const { min, max, log, auto } = this.options;
    const share = value === null ? -1 : log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
    this.input.value = value === null && auto ? -4 : Math.round(share * this.steps);
    this.current = value;
    this.#show();
  }

  #read() {
    const { min, max, log, step, auto } = this.options;
    const position = Number(this.input.value), share = Math.max(0, position) / this.steps;
    if (auto && position < 0) this.current = null;
    else if (log) this.current = round(min * (max / min) ** share);
    else this.current = Number((Math.round((min + share * (max - min)) / step) * step).toFixed(6));
    this.#show();
    this.element.dispatchEvent(new Event("change", { bubbles: true }));
  }

  #show() {
    const { auto, show = String } = this.options;
    const text = this.current === null ? auto : show(this.current);
    const low = Number(this.input.min), share = (Number(this.input.value) - low) / (this.steps - low);
    this.output.textContent = text;
    this.input.setAttribute("aria-valuetext", text);
    this.input.style.setProperty("--full", `${(share * 100).toFixed(1)}%`);
  }
}

/** Two significant digits: what a person would have typed. */
function round(value) {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.round(value / unit) * unit).toPrecision(3));
}
