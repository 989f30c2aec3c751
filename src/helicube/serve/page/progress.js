/** How far a job is, in words, as a bar, and for screen readers. */

import { find } from "./elements.js";
import { count, few, plural } from "./words.js";

let said = "";

/** Tell screen readers, once per change. */
export function say(text) {
  if (text === said) return;
  said = text;
  find("#say").textContent = text;
}

/** What the objects of a job are doing together. @returns {{stage: string, rate: string, share: number, busy: boolean}} */
export function summary(objects) {
  const are = (status) => objects.filter((object) => object.status === status);
  const total = objects.reduce((sum, object) => sum + object.tokens_total, 0);
  const ended = (object) => ["done", "failed", "cancelled", "meshing"].includes(object.status);
  const done = objects.reduce((sum, object) => sum + (ended(object) ? object.tokens_total : object.tokens_done), 0);
  const decoding = are("decoding"), queued = are("queued"), left = objects.filter((object) => !ended(object));
  const speed = decoding.reduce((sum, object) => sum + (object.tokens_per_s ?? 0), 0);
  const tokens = `${count(done)} of ${count(total)} tokens`;
  if (decoding.length) return { stage: "Decoding shape tokens", rate: speed ? `${tokens} · ${few(speed)} tokens/s` : tokens, share: (0.8 * done) / total, busy: false };
  if (queued.length && left.length === queued.length) {
    const before = Math.min(...queued.map((object) => object.queue_position ?? 0));
    return { stage: before ? `Waiting for a place: ${plural(before, "object")} before yours` : "Starting", rate: "", share: (0.8 * done) / total, busy: true };
  }
  const meshed = objects.length - are("meshing").length;
  return { stage: "Building the surface", rate: objects.length > 1 ? `${meshed} of ${objects.length} ready` : tokens, share: 0.8 + (0.2 * meshed) / objects.length, busy: true };
}

export function showProgress(objects) {
  const { stage, rate, share, busy } = summary(objects), track = find("#progress .track");
  find("#progress").hidden = false;
  find("#result").hidden = find("#foot-help").hidden = true;
  find("#progress-stage").textContent = stage;
  find("#progress-rate").textContent = rate;
  track.dataset.busy = String(busy);
  track.setAttribute("aria-valuenow", Math.round(100 * share));
  track.setAttribute("aria-valuetext", `${stage}, ${rate}`);
  track.firstElementChild.style.transform = `scaleX(${share})`;
  say(stage);
}

export function hideProgress() {
  find("#progress").hidden = true;
  find("#foot-help").hidden = !find("#result").hidden;
}
