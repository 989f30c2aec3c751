/** What was made before: thumbnails, newest first; it lives on the server, so a reload finds it. */

import { find, make, makeSvg } from "./elements.js";
import { Model } from "./model.js";
import { picture } from "./picture.js";
import { call } from "./server.js";

const PAGE = 30, AGAIN_MS = 4000;

export class Gallery extends EventTarget {
  objects = [];
  #current = null;
  #next = null;
  #pictures = new Map();
  #queue = Promise.resolve();
  #channel = "BroadcastChannel" in window ? new BroadcastChannel("helicube") : null;

  constructor(stage) {
    super();
    this.stage = stage;
    this.list = find("#gallery");
    this.#channel?.addEventListener("message", () => this.load());
    document.addEventListener("visibilitychange", () => document.hidden || this.load());
    this.list.addEventListener("scroll", () => this.#more(), { passive: true });
  }

  /** The newest objects, anew; a lost connection leaves what is shown. */
  async load() {
    const answer = await call(`/v1/objects?limit=${PAGE}`).catch(() => null);
    if (!answer) return;
    // What was scrolled to stays: the older pages hang on where the newest one meets them.
    const at = this.objects.findIndex(({ id }) => id === answer.objects.at(-1)?.id);
    const older = answer.next && at >= 0 ? this.objects.slice(at + 1) : [];
    this.objects = [...answer.objects, ...older];
    if (!older.length) this.#next = answer.next;
    this.#draw();
  }

  /** This page has made something: other pages should look too. */
  async changed() {
    await this.load();
    this.#channel?.postMessage("changed");
  }

  mark(id) {
    this.#current = id;
    for (const item of this.list.children) item.firstElementChild.setAttribute("aria-current", String(item.dataset.id === id));
  }

  async #more() {
    const { scrollLeft, clientWidth, scrollWidth } = this.list;
    if (!this.#next || scrollLeft + clientWidth < scrollWidth - 300) return;
    const cursor = this.#next, last = this.objects.at(-1)?.id;
    this.#next = null;
    const answer = await call(`/v1/objects?limit=${PAGE}&before=${encodeURIComponent(cursor)}`).catch(() => null);
    // Begun anew meanwhile: what came hangs on what is no longer shown.
    if (this.objects.at(-1)?.id !== last) return;
    this.#next = answer ? answer.next : cursor;
    if (!answer) return;
    this.objects.push(...answer.objects);
    this.#draw();
  }

  #draw() {
    const have = new Map([...this.list.children].map((item) => [item.dataset.id, item]));
    const items = this.objects.map((object) => have.get(object.id) ?? this.#item(object));
    this.list.replaceChildren(...items);
    find("#gallery-empty").hidden = items.length > 0;
    this.mark(this.#current);
  }

  #item(object) {
    const image = make("img", { src: object.urls.png, alt: "", loading: "lazy", decoding: "async" });
    image.addEventListener("load", () => { image.dataset.loaded = "true"; });
    image.addEventListener("error", () => this.#again(object, image), { once: true });
    const open = make("button", { type: "button", class: "thumb", title: object.prompt }, image, make("span", { class: "name" }, object.prompt));
    open.addEventListener("click", () => this.dispatchEvent(new CustomEvent("open", { detail: object })));
    const cross = makeSvg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, makeSvg("path", { d: "M2 2l8 8M10 2l-8 8" }));
    const remove = make("button", { type: "button", class: "remove", "aria-label": `Delete ${object.prompt}`, title: "Delete" }, cross);
    remove.addEventListener("click", () => this.#remove(object));
    return make("li", { "data-id": object.id }, open, remove);
  }

  /** Once more in a while, as the server may be busy or away; then the picture is drawn here. */
  #again(object, image) {
    setTimeout(() => {
      image.addEventListener("error", () => this.#drawHere(object, image), { once: true });
      image.src = `${object.urls.png}?again`;
    }, AGAIN_MS);
  }

  /** One after another, so that the view stays fluent. */
  #drawHere(object, image) {
    this.#queue = this.#queue.then(async () => {
      if (!this.#pictures.has(object.id)) {
        const model = await Model.load(object.urls.glb).catch(() => null);
        if (model && !this.stage.blind) this.#pictures.set(object.id, picture(this.stage, model));
      }
      const found = this.#pictures.get(object.id);
      if (found) image.src = found;
      else image.replaceWith(make("span", { class: "no-image" }));
    });
  }

  async #remove(object) {
    await call(`/v1/objects/${object.id}`, { method: "DELETE" }).catch((trouble) => {
      if (trouble.status !== 404) this.dispatchEvent(new CustomEvent("trouble", { detail: trouble }));
    });
    this.dispatchEvent(new CustomEvent("remove", { detail: object }));
    await this.changed();
  }
}
