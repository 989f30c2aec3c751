/** Generate, watch, stop: one job at a time on the stage. */

import { find } from "./elements.js";
import { Job } from "./job.js";
import { Model } from "./model.js";
import { hideProgress, say, showProgress } from "./progress.js";
import { showResult } from "./result.js";
import { call, Trouble } from "./server.js";
import { keep, kept } from "./storage.js";
import { showTrouble } from "./trouble.js";
import { count, plural } from "./words.js";

const KEPT = "job";

export class Workshop {
  job = null;
  /** A job that runs behind an object of the gallery. */
  aside = null;
  /** A request that the server has not answered yet. */
  asking = null;
  /** Objects on the stage, by cell; null where none is finished. */
  shown = [];
  /** The last mesh on its way to each cell. */
  loads = [];

  constructor(form, stage, gallery) {
    Object.assign(this, { form, stage, gallery });
    stage.addEventListener("select", () => this.#result());
    gallery.addEventListener("open", ({ detail }) => this.open(detail));
    gallery.addEventListener("trouble", ({ detail }) => showTrouble(detail));
    gallery.addEventListener("remove", ({ detail }) => {
      this.shown = this.shown.map((object) => (object?.id === detail.id ? null : object));
      this.#result();
    });
  }

  async generate() {
    const { fault } = this.form;
    if (fault) return void showTrouble(new Trouble(fault.message, { code: fault.code }));
    // Another press while the server has not answered the first would start a second job.
    if (this.asking) return;
    const asking = this.asking = { stopped: false };
    showTrouble(null);
    this.#busy(true);
    try {
      const job = await Job.start(this.form.request);
      this.asking = null;
      if (asking.stopped) return void await this.#forsake(job);
      // Only now: had the server declined, the job before would still be there.
      this.leave();
      keep(KEPT, job.id, "sessionStorage");
      this.#watch(job);
    } catch (trouble) {
      this.asking = null;
      this.#busy(Boolean(this.#underway));
      showTrouble(trouble);
    }
  }

  /** The job that runs, on the stage or behind an object of the gallery. */
  get #underway() { return [this.job, this.aside].find((job) => job?.running) ?? null; }

  /** The answer came after Stop. */
  async #forsake(job) {
    await job.cancel().catch(showTrouble);
    this.#busy(Boolean(this.#underway));
  }

  /** A job that was under way when the page was reloaded. */
  async resume() {
    const id = kept(KEPT, "sessionStorage");
    if (!id || this.job) return;
    let job = null;
    try {
      job = await Job.resume(id);
    } catch (error) {
      // Busy or starting: it may still be there at the next reload.
      if (error.status !== 404) return;
    }
    if (job?.running) this.#watch(job);
    else keep(KEPT, null, "sessionStorage");
  }

  async stop() {
    if (this.asking) {
      this.asking.stopped = true;
      return void say("Stopped");
    }
    const job = this.#underway;
    if (!job) return;
    await job.cancel().catch((trouble) => { if (trouble.status !== 404) showTrouble(trouble); });
    say("Stopped");
  }

  /** Another job takes the stage: the one before is no longer wanted. */
  leave() {
    const job = this.#underway;
    this.job = this.aside = null;
    if (!job) return;
    job.leave();
    call(`/v1/jobs/${job.id}?forget=false`, { method: "DELETE" }).catch(() => { /* it will simply be finished */ });
  }

  /** An object of the gallery; a job under way goes on behind it, can be stopped, and the gallery gets what it makes. */
  async open(object) {
    this.aside = this.#underway;
    this.job = null;
    showTrouble(null);
    this.#prepare([object]);
    await this.#load(0, object.urls.glb, Infinity, object);
  }

  #watch(job) {
    this.job = job;
    this.aside = null;
    this.#prepare(job.objects);
    const { box, size_m } = job.state.request;
    if (box) this.stage.wait(box.map((side) => (side / Math.max(...box)) * (size_m ?? 1)));
    this.#busy(true);
    const mine = (take) => (event) => { if (this.job === job) take(event); };
    job.addEventListener("change", mine(() => this.#change(job)));
    job.addEventListener("preview", mine(({ detail }) => this.#load(detail.index, detail.preview.url, detail.preview.level)));
    job.addEventListener("end", () => this.gallery.changed());
    job.addEventListener("end", () => { if (this.aside === job) this.#endAside(job); });
    job.addEventListener("end", mine(() => this.#end(job)));
    job.watch();
  }

  #prepare(objects) {
    this.shown = objects.map(() => null);
    this.loads = [];
    find("#blank").hidden = true;
    this.stage.arrange(objects.length);
    this.stage.wait(null);
    objects.forEach((object, i) => this.#label(i, object));
    this.#result();
  }

  #change(job) {
    if (job.running) showProgress(job.objects);
    job.objects.forEach((object, i) => {
      const cell = this.stage.cells[i];
      if (object.error) cell.say(object.error.message);
      else if (object.status === "cancelled" && !cell.model) cell.say("Stopped");
      else if (!cell.model) cell.lattice.light(object.status === "meshing" ? 1 : object.tokens_done / Math.max(object.tokens_total, 1));
      if (object.object && this.shown[i]?.id !== object.object.id) {
        this.shown[i] = object.object;
        this.#load(i, object.object.urls.glb, Infinity, object.object);
      }
    });
    this.stage.draw();
  }

  /** It ended behind an object of the gallery. */
  #endAside(job) {
    this.aside = null;
    keep(KEPT, null, "sessionStorage");
    this.#busy(Boolean(this.asking));
    if (job.trouble) showTrouble(job.trouble);
    say(job.state.status === "done" ? "Done: the new object is in the history" : "Stopped");
  }

  #end(job) {
    keep(KEPT, null, "sessionStorage");
    this.#busy(Boolean(this.asking));
    hideProgress();
    this.#result();
    const made = this.shown.filter(Boolean), failed = job.objects.filter((object) => object.error);
    if (job.trouble) showTrouble(job.trouble);
    else if (failed.length && !made.length) showTrouble(new Trouble(failed[0].error.message, { code: failed[0].error.code }));
    if (!made.length && job.state.status === "cancelled") say("Stopped");
    this.#announce();
  }

  /** Once all that was made can be seen. */
  #announce() {
    const made = this.shown.filter(Boolean);
    if (this.job?.running || !made.length || this.shown.some((object, i) => object && this.stage.cells[i].level !== Infinity)) return;
    say(`Done: ${made.length > 1 ? plural(made.length, "object") : `${made[0].prompt}, ${count(made[0].num_triangles)} triangles`}`);
  }

  /** Load a mesh into a cell, after those that were there before it: what is first to be ready is first to be seen. */
  #load(index, url, level, object = null) {
    const { job, shown } = this;
    this.loads[index] = (this.loads[index] ?? Promise.resolve()).then(() => {
      if (this.job === job && this.shown === shown) return this.#loadNow(index, url, level, object);
    });
    return this.loads[index];
  }

  /** Unless something else takes the stage meanwhile. */
  async #loadNow(index, url, level, object) {
    const cell = this.stage.cells[index], { job } = this, { shown } = this;
    let model;
    try {
      model = await Model.load(url);
    } catch (trouble) {
      // A preview that is gone is no loss: the next one, or the object itself, is on its way.
      if (object && this.shown === shown) cell.say(trouble.message);
      return;
    }
    if (this.job !== job || this.shown !== shown) return void model.dispose();
    this.stage.show(index, model, level);
    if (level !== Infinity) return void say("First look");
    this.shown[index] = object;
    this.#label(index, object);
    this.#result();
    this.#announce();
  }

  #label(index, { seed, num_triangles: triangles }) {
    this.stage.cells[index].button.hidden = false;
    this.stage.cells[index].button.textContent = triangles ? `Seed ${seed} · ${count(triangles)} triangles` : `Seed ${seed}`;
  }

  #result() {
    const object = this.shown[this.stage.selected] ?? null;
    this.gallery.mark(object?.id ?? null);
    if (this.job?.running) return;
    showResult(object, (chosen) => this.form.set({ ...chosen.settings, prompt: chosen.prompt, seed: chosen.seed, variants: 1 }));
    hideProgress();
  }

  #busy(busy) {
    find("#cancel").hidden = !busy;
    find("#generate").textContent = busy ? "Generating" : "Generate";
    find("#generate").setAttribute("aria-busy", String(busy));
  }
}
