/** Whether the server is there. Lost: asks again until it is, then tells whoever listens for "back". */

import { find } from "./elements.js";

// By what the server says of itself.
const WORDS = { ok: "Connected", stopping: "Server is stopping", broken: "Server is broken: see its log" };
const IDLE_MS = 5000, FIRST_MS = 400, LONGEST_MS = 3000;

class Connection extends EventTarget {
  state = "waiting";
  #wait = FIRST_MS;
  #timer = 0;

  start() {
    this.#check();
    addEventListener("online", () => this.doubt());
  }

  /** Look at once: something has just failed. */
  doubt() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), 0);
  }

  /** Resolves when the server answers. */
  back() {
    if (this.state === "good") return Promise.resolve();
    return new Promise((resolve) => this.addEventListener("back", resolve, { once: true }));
  }

  async #check() {
    clearTimeout(this.#timer);
    const answer = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(8000) }).catch(() => null);
    const good = Boolean(answer?.ok), health = await answer?.json().catch(() => null);
    this.#wait = good ? FIRST_MS : Math.min(LONGEST_MS, this.#wait * 1.5);
    this.#tell(good ? "good" : "lost", WORDS[good ? "ok" : health?.status] ?? "Server gone, reconnecting");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), good ? IDLE_MS : this.#wait);
  }

  #tell(state, words) {
    const before = this.state, badge = find("#connection");
    this.state = state;
    badge.dataset.state = state;
    if (badge.querySelector("span").textContent !== words) badge.querySelector("span").textContent = words;
    if (before === state) return;
    this.dispatchEvent(new Event(state === "good" ? "back" : "lost"));
  }
}

export const connection = new Connection();
