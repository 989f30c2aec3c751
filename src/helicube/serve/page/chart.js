/** A small live chart, drawn by hand: one number over the last two minutes. */

import { make, makeSvg } from "./elements.js";

const WIDTH = 400, HEIGHT = 132, LEFT = 44, TOP = 8, LOW = 114;

export class Chart {
  /** @param {{title: string, unit: string, least?: number, show: (v: number) => string}} options */
  constructor(options) {
    this.options = { least: 0, ...options };
    this.now = make("p", { class: "now" });
    this.svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.element = make("section", { class: "chart" }, make("header", {}, make("h2", {}, options.title), this.now), this.svg);
  }

  /** @param points [{at, value}], value null where there was none. @param current the number to print. */
  draw(points, current, span = 120) {
    const { title, unit, show, least } = this.options;
    this.now.replaceChildren(current === null ? "–" : show(current), make("small", {}, unit));
    const width = Math.max(this.svg.clientWidth, 200), known = points.filter((point) => point.value !== null);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.setAttribute("aria-label", `${title}: ${current === null ? "no value yet" : `${show(current)} ${unit}`}`);
    const top = nice(Math.max(least, ...known.map((point) => point.value)) || 1), end = points.at(-1)?.at ?? 0;
    const x = (at) => LEFT + (1 - (end - at) / span) * (width - LEFT), y = (value) => LOW - (value / top) * (LOW - TOP);
    this.svg.replaceChildren(...this.#frame(width, top, y, span), ...runs(points).flatMap((run) => curve(run, x, y)));
  }

  #frame(width, top, y, span) {
    const line = (value) => makeSvg("line", { class: "grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) });
    const text = (at, value) => makeSvg("text", { x: LEFT - 8, y: at + 4, "text-anchor": "end" }, value);
    return [0, 0.5, 1].flatMap((share) => [line(share * top), text(y(share * top), this.options.show(share * top))]).concat(
      makeSvg("text", { x: LEFT, y: HEIGHT - 2 }, `${span} s ago`),
      makeSvg("text", { x: width, y: HEIGHT - 2, "text-anchor": "end" }, "now"),
    );
  }
}

/** Stretches without a gap. */
function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point.value === null) found.push([]);
    else found.at(-1).push(point);
  }
  return found.filter((run) => run.length);
}

function curve(run, x, y) {
  const path = run.map(({ at, value }) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
  const ends = [run[0], run.at(-1)].map(({ at }) => x(at).toFixed(1));
  const shown = run.length > 1 ? `M${path}` : `M${path}h1.5`;
  return [makeSvg("path", { class: "under", d: `M${ends[0]} ${LOW}L${path}L${ends[1]} ${LOW}Z` }), makeSvg("path", { class: "curve", d: shown })];
}

/** The next of 1, 2, 4, 5, 10 times a power of ten. */
function nice(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 2, 4, 5, 10].find((m) => m * unit >= value * 0.999);
}
