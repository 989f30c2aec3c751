/** The object that is selected: what it is, and where to get it. */

import { find, make } from "./elements.js";
import { count, seconds, size } from "./words.js";

// An OBJ names an MTL, which is to lie beside it.
const FORMATS = ["glb", "obj", "mtl", "stl", "ply"];
const HINTS = { obj: "With the MTL beside it", mtl: "Materials of the OBJ: keep both in one folder" };

/** @param object as of the service, or null. @param onReuse called with the object when its settings are wanted. */
export function showResult(object, onReuse) {
  find("#result").hidden = !object;
  if (!object) return;
  find("#foot-help").hidden = true;
  const time = object.times?.total_s ? ` · ${seconds(object.times.total_s)}` : "";
  find("#result-prompt").textContent = object.prompt;
  find("#result-prompt").title = object.prompt;
  find("#result-facts").textContent = `${count(object.num_triangles)} triangles · ${size(object.extents)} · seed ${object.seed}${time}`;
  find("#result-notes").textContent = object.notes.join(" · ");
  find("#result-notes").hidden = !object.notes.length;
  const links = FORMATS.filter((format) => object.urls[format]).map((format) =>
    make("a", { href: `${object.urls[format]}?download=true`, download: true, title: HINTS[format] ?? "", "aria-label": `Download ${format.toUpperCase()}` }, format.toUpperCase()));
  const reuse = make("button", { type: "button", title: "Put this prompt, seed and these settings into the form" }, "Use settings");
  reuse.addEventListener("click", () => onReuse(object));
  find("#downloads").replaceChildren(reuse, ...links);
}
