/** The live engine: what the decoder on the server is doing, once a second. */

import { Chart } from "./chart.js";
import { find, make } from "./elements.js";
import { call } from "./server.js";
import { bytes, count, duration, few, seconds } from "./words.js";

const PERIOD_MS = 1000;
const milliseconds = (value) => few(value * 1e3);

const CHARTS = {
  tpot_s: { title: "Time per token (TPOT)", unit: "ms", show: milliseconds, least: 0.001 },
  tokens_per_s: { title: "Throughput", unit: "tokens/s", show: few },
  running: { title: "Batch: slots in use", unit: "", show: few, least: 2 },
  queued: { title: "Queue", unit: "waiting", show: few, least: 2 },
};

let charts = null, timer = 0;

/** Start or stop asking; nothing is asked while the view is hidden. */
export function showEngine(shown) {
  clearTimeout(timer);
  if (!shown) return;
  if (!charts) {
    charts = Object.fromEntries(Object.entries(CHARTS).map(([name, options]) => [name, new Chart(options)]));
    find("#engine-charts").replaceChildren(...Object.values(charts).map((chart) => chart.element));
  }
  ask();
}

async function ask() {
  const state = document.hidden ? null : await call("/v1/engine").catch(() => null);
  if (state && !find("#engine").hidden) draw(state);
  clearTimeout(timer);
  if (!find("#engine").hidden) timer = setTimeout(ask, PERIOD_MS);
}

function draw(state) {
  find("#engine-subtitle").textContent = `Model “${state.model}” on ${state.device}, up for ${duration(state.uptime_s)}.`;
  for (const [name, chart] of Object.entries(charts)) {
    const points = state.history.map((moment) => ({ at: moment.at, value: moment[name] }));
    chart.draw(points, state[name] ?? null);
  }
  charts.running.now.lastElementChild.textContent = `of ${count(state.slots)} slots`;
  facts(state);
  batch(state.batch);
}

function facts(state) {
  const time = (value) => (value === null ? "–" : value < 0.1 ? `${milliseconds(value)} ms` : seconds(value));
  const all = {
    "First token": time(state.ttft_s), "First preview": time(state.first_preview_s), "Whole object": time(state.object_s),
    "Building surfaces": count(state.meshing), Made: count(state.num_done), "From the cache": count(state.num_cached),
    Failed: count(state.num_failed), Cancelled: count(state.num_cancelled), Kept: `${bytes(state.cache_bytes)} of ${bytes(state.cache_limit_bytes)}`,
  };
  find("#engine-facts").replaceChildren(...Object.entries(all).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function batch(rows) {
  const items = rows.map((row) => {
    const bar = make("i");
    bar.style.transform = `scaleX(${row.tokens_done / Math.max(row.tokens_total, 1)})`;
    return make("li", { class: "slot" }, make("span", {}, row.prompt), make("span", { class: "number" }, `${count(row.tokens_done)} of ${count(row.tokens_total)}`), make("div", { class: "track" }, bar));
  });
  find("#engine-batch").replaceChildren(...(items.length ? items : [make("li", { class: "help" }, "Idle.")]));
}
