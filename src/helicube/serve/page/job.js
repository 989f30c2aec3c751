/** A job: what the server makes of one press of Generate. Emits "change", "preview" and "end". */

import { connection } from "./connection.js";
import { call, Trouble } from "./server.js";

const PAUSE_MS = 500;

export class Job extends EventTarget {
  /** Ask for objects; throws a Trouble if the server declines. */
  static async start(request) {
    return new Job(await call("/v1/objects", { method: "POST", body: request }));
  }

  /** A job that the server already has. */
  static async resume(id) {
    return new Job(await call(`/v1/jobs/${id}`));
  }

  constructor(state) {
    super();
    this.state = state;
    this.closed = false;
  }

  get id() { return this.state.id; }
  get objects() { return this.state.objects; }
  get running() { return !this.closed && ["queued", "running"].includes(this.state.status); }

  /** Follow the job to its end; call once, after listeners are in place. */
  watch() {
    this.#tell();
    if (this.running) this.#listen();
    else this.#end();
  }

  #tell() {
    for (const object of this.objects) if (object.preview && !object.object) this.#emit("preview", object);
    this.#emit("change");
  }

  /** Stop for good; the slot on the server is free at once. */
  async cancel() {
    if (!this.running) return;
    this.state.status = "cancelled";
    for (const object of this.objects) if (object.status !== "done" && object.status !== "failed") object.status = "cancelled";
    this.#end();
    await call(`/v1/jobs/${this.id}?forget=false`, { method: "DELETE" });
  }

  /** Leave the job to the server and stop listening. */
  leave() {
    this.closed = true;
    this.source?.close();
  }

  #listen() {
    const source = this.source = new EventSource(`/v1/jobs/${this.id}/events`);
    const on = (name, take) => source.addEventListener(name, (event) => this.closed || take(JSON.parse(event.data)));
    on("job", (job) => {
      this.state = job;
      this.#tell();
      if (!this.running) this.#end();
    });
    on("object", (object) => { this.state.objects[object.index] = object; this.#emit("change"); });
    on("progress", (step) => { Object.assign(this.objects[step.index], step); this.#emit("change"); });
    on("preview", (preview) => {
      const object = this.objects[preview.index];
      object.preview = preview;
      this.#emit("preview", object);
    });
    on("end", (job) => { this.state = job; this.#end(); });
    // The browser's own reconnecting gives up for good on any status but 200, so it is done here.
    source.addEventListener("error", () => { source.close(); this.#again(); });
  }

  async #again() {
    if (this.closed) return;
    connection.doubt();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    await connection.back();
    if (this.closed) return;
    try {
      this.state = await call(`/v1/jobs/${this.id}`);
    } catch (trouble) {
      if (trouble.status !== 404) return void this.#again();
      this.state.status = "failed";
      this.trouble = new Trouble("The server no longer knows this job. Press Generate again.");
      return void this.#end();
    }
    this.#tell();
    if (this.running) this.#listen();
    else this.#end();
  }

  #end() {
    if (this.closed) return;
    this.leave();
    this.#emit("change");
    this.#emit("end");
  }

  #emit(name, detail = null) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
