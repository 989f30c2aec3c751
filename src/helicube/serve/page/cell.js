/** One object's place on the stage: its scene, and what is written over it. */

import * as three from "./three.js";
import { make } from "./elements.js";
import { Figure } from "./figure.js";
import { Floor } from "./floor.js";
import { Lattice } from "./lattice.js";

const SHADOW_PIXELS = 1024;
const START_BOX = [1, 1, 1];

export class Cell {
  constructor(index) {
    this.index = index;
    this.scene = new three.Scene();
    this.floor = new Floor();
    this.figure = new Figure();
    this.lattice = new Lattice();
    this.sun = new three.DirectionalLight("#fff6e8", 2.4);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(SHADOW_PIXELS, SHADOW_PIXELS);
    this.sun.shadow.autoUpdate = false;
    this.sun.shadow.radius = 5;
    this.sun.shadow.normalBias = 0.01;
    const rim = new three.DirectionalLight("#cfe0ff", 0.7);
    rim.position.set(-3, 2, -4);
    this.sky = new three.HemisphereLight("#ffffff", "#b8b0a4", 1.5);
    this.scene.add(this.floor.group, this.figure.group, this.lattice.points, this.sun, this.sun.target, rim, this.sky);
    this.button = make("button", { type: "button", "aria-pressed": "false" });
    this.fault = make("p", { class: "fault", hidden: true });
    this.element = make("div", { class: "cell" }, this.fault, this.button);
    this.size = new three.Vector3(...START_BOX);
    this.model = null;
    this.level = -1;
  }

  /** Empty, waiting for tokens within this box (metres). */
  wait(box) {
    this.drop();
    this.level = -1;
    this.say(null);
    this.button.hidden = true;
    this.lattice.points.visible = true;
    this.lattice.light(0);
    this.measure(new three.Vector3(...(box ?? START_BOX)));
    this.lattice.fit(box ?? START_BOX, Math.min(devicePixelRatio, 2));
    this.element.dataset.level = "none";
    delete this.element.dataset.triangles;
  }

  /** Replace what is shown by a better mesh. */
  show(model, level) {
    this.drop();
    this.level = level;
    this.model = model;
    this.lattice.points.visible = false;
    this.scene.add(model.group);
    this.measure(model.size);
    this.element.dataset.level = level === Infinity ? "final" : String(level);
    this.element.dataset.triangles = String(model.numTriangles);
  }

  drop() {
    if (!this.model) return;
    this.scene.remove(this.model.group);
    this.model.dispose();
    this.model = null;
  }

  say(fault) {
    this.fault.hidden = !fault;
    this.fault.textContent = fault ?? "";
    if (fault) this.lattice.points.visible = false;
  }

  measure(size) {
    this.size.copy(size);
    const radius = size.length() / 2;
    this.gridCell = this.floor.fit(Math.max(radius, 0.05));
    this.figure.beside(size);
    this.sun.position.set(1.5, 3.2, 2.2).multiplyScalar(radius);
    this.sun.target.position.set(0, size.y / 2, 0);
    Object.assign(this.sun.shadow.camera, { left: -1.6 * radius, right: 1.6 * radius, top: 1.6 * radius, bottom: -1.6 * radius, near: 0.01, far: 9 * radius });
    this.sun.shadow.camera.updateProjectionMatrix();
    this.sun.shadow.needsUpdate = true;
  }

  tint(look) {
    this.floor.tint(look.line, look.dark);
    this.floor.grid.visible = look.grid;
    this.figure.tint(look.figureBoard, look.soft);
    this.figure.group.visible = look.figure;
    this.lattice.tint(look.accent, look.line);
    this.sky.groundColor.set(look.dark ? "#55524c" : "#b8b0a4");
    this.model?.dress(look);
    this.sun.shadow.needsUpdate = true;
  }

  dispose() {
    this.drop();
    this.scene.traverse((node) => { node.geometry?.dispose(); node.material?.dispose(); });
    this.sun.shadow.map?.dispose();
    this.element.remove();
  }
}
