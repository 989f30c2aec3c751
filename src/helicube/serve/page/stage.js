/** The 3D view: one canvas, one camera, and as many cells side by side as there are variants. Draws only when something changed. */

import * as three from "./three.js";
import { Cell } from "./cell.js";
import { find } from "./elements.js";
import { FIGURE_M } from "./figure.js";
import { NoRenderer } from "./no-renderer.js";
import { drawsOnProcessor } from "./processor.js";
import { token } from "./theme.js";

const REVEAL_MS = 520;
const HOME = new three.Vector3(0.62, 0.42, 1).normalize();
const MOST_PIXELS = 2;
// The figure is left out of the frame where it would make the object smaller than this.
const MOST_ROOM = 2;

/** The sphere around an object of this size and the figure beside it. */
function around(size) {
  const box = new three.Box3(new three.Vector3(-size.x / 2 - 0.75, 0, -size.z / 2), new three.Vector3(size.x / 2, Math.max(size.y, FIGURE_M + 0.1), size.z / 2));
  const sphere = box.getBoundingSphere(new three.Sphere());
  // Room for the buttons above.
  sphere.center.y += 0.06 * sphere.radius;
  sphere.radius *= 1.04;
  return sphere;
}

export class Stage extends EventTarget {
  cells = [];
  selected = 0;
  /** The browser draws nothing in 3D. */
  blind = false;
  #asked = false;
  #reveals = new Map();

  constructor() {
    super();
    this.element = find("#view");
    this.canvas = find("#canvas");
    this.renderer = this.#start();
    this.renderer.localClippingEnabled = true;
    this.renderer.shadowMap.enabled = !drawsOnProcessor;
    this.renderer.toneMapping = three.NeutralToneMapping;
    this.renderer.setScissorTest(true);
    this.renderer.autoClear = false;
    this.camera = new three.PerspectiveCamera(32, 1, 0.01, 100);
    this.controls = new three.OrbitControls(this.camera, this.canvas);
    Object.assign(this.controls, { enableDamping: true, dampingFactor: 0.12, maxPolarAngle: Math.PI * 0.52, zoomToCursor: false });
    this.controls.addEventListener("change", () => this.draw());
    this.look = { colors: true, wire: false, grid: true, figure: true };
    new ResizeObserver(() => this.#resize()).observe(this.element);
    addEventListener("theme", () => this.restyle());
    this.#keys();
    this.#clicks();
    this.arrange(1);
    this.wait(null);
  }

  /** A renderer, or a stand-in and a line of text. */
  #start() {
    try {
      return new three.WebGLRenderer({ canvas: this.canvas, antialias: !drawsOnProcessor, alpha: true });
    } catch {
      this.blind = true;
      find("#no-webgl").hidden = false;
      return new NoRenderer();
    }
  }

  /** That many empty cells. */
  arrange(count) {
    while (this.cells.length > count) this.cells.pop().dispose();
    while (this.cells.length < count) {
      const cell = new Cell(this.cells.length);
      cell.button.addEventListener("click", () => this.select(cell.index));
      this.cells.push(cell);
      find("#cells").append(cell.element);
    }
    this.#place();
    this.restyle();
    this.select(0);
  }

  /** All cells empty and waiting. */
  wait(box) {
    for (const cell of this.cells) {
      cell.wait(box);
      this.#reveals.delete(cell);
    }
    this.home();
  }

  show(index, model, level) {
    const cell = this.cells[index];
    if (!cell || level < cell.level) return void model.dispose();
    const first = !cell.model, before = cell.size.length();
    cell.show(model, level);
    cell.tint(this.colors());
    const still = drawsOnProcessor || matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (first && !still) this.#reveals.set(cell, performance.now());
    if (first || Math.abs(cell.size.length() / before - 1) > 0.2) this.home();
    this.draw();
  }

  select(index) {
    this.selected = index;
    this.cells.forEach((cell, i) => cell.button.setAttribute("aria-pressed", String(i === index)));
    this.dispatchEvent(new Event("select"));
  }

  toggle(name) {
    this.look[name] = !this.look[name];
    this.restyle();
    return this.look[name];
  }

  restyle() {
    const colors = this.colors();
    for (const cell of this.cells) cell.tint(colors);
    this.draw();
  }

  /** See all of the largest object, and enough of the figure to compare. */
  home() {
    const size = this.cells.reduce((most, cell) => most.max(cell.size), new three.Vector3());
    const radius = Math.max(size.length() / 2, 0.02);
    const view = new three.Sphere(new three.Vector3(0, size.y * 0.48, 0), 1.12 * radius);
    const both = around(size);
    if (this.look.figure && both.radius < MOST_ROOM * radius) view.copy(both);
    else if (this.look.figure) view.radius *= 1.25;
    const angle = (Math.min(this.camera.fov, this.camera.fov * this.camera.aspect) * Math.PI) / 360;
    this.#still();
    this.controls.target.copy(view.center);
    this.camera.position.copy(view.center).addScaledVector(HOME, view.radius / Math.sin(angle));
    Object.assign(this.camera, { near: radius / 50, far: radius * 80 });
    this.camera.updateProjectionMatrix();
    Object.assign(this.controls, { minDistance: radius * 0.6, maxDistance: radius * 24 });
    this.controls.update();
    this.dispatchEvent(new Event("home"));
    this.draw();
  }

  /** End what is left of a swing, which would carry the camera on. */
  #still() {
    this.controls.enableDamping = false;
    this.controls.update();
    this.controls.enableDamping = true;
  }

  /** Metres of one cell of the grid. */
  get gridCell() { return this.cells[this.selected]?.gridCell ?? 0; }

  draw() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame((now) => {
      this.#asked = false;
      const moving = this.controls.update();
      this.#unveil(now);
      this.#render();
      this.element.dataset.azimuth = ((this.controls.getAzimuthalAngle() * 180) / Math.PI).toFixed(1);
      if (moving || this.#reveals.size) this.draw();
    });
  }

  #unveil(now) {
    for (const [cell, start] of this.#reveals) {
      const share = Math.min(1, (now - start) / REVEAL_MS);
      cell.model?.reveal(1 - (1 - share) ** 3);
      cell.sun.shadow.needsUpdate = true;
      if (share >= 1) this.#reveals.delete(cell);
    }
  }

  #render() {
    const height = this.element.clientHeight;
    for (const cell of this.cells) {
      const { x, y, w, h } = cell.place;
      this.renderer.setViewport(x, height - y - h, w, h);
      this.renderer.setScissor(x, height - y - h, w, h);
      this.renderer.clear();
      cell.figure.face(this.camera);
      cell.figure.scale(h, this.camera.fov);
      this.renderer.render(cell.scene, this.camera);
    }
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, MOST_PIXELS));
    this.renderer.setSize(width, height, false);
    this.#place();
    this.home();
    this.#render();
  }

  /** The split into columns in which cells come closest to squares, with none left unused if possible. */
  #place() {
    const { clientWidth: width, clientHeight: height } = this.element, n = this.cells.length;
    const badness = (columns) => {
      const rows = Math.ceil(n / columns), unused = columns * rows - n;
      return Math.abs(Math.log(width / columns / (height / rows))) + unused;
    };
    const columns = Array.from({ length: n }, (_, i) => i + 1).reduce((best, c) => (badness(c) < badness(best) ? c : best));
    const rows = Math.ceil(n / columns), w = width / columns, h = height / rows;
    this.cells.forEach((cell, i) => {
      cell.place = { x: (i % columns) * w, y: Math.floor(i / columns) * h, w, h };
      Object.assign(cell.element.style, { left: `${cell.place.x}px`, top: `${cell.place.y}px`, width: `${w}px`, height: `${h}px` });
      cell.element.dataset.left = String(i % columns > 0);
      cell.element.dataset.top = String(i >= columns);
    });
    this.camera.aspect = w / Math.max(h, 1);
    this.camera.updateProjectionMatrix();
  }

  colors() {
    const dark = document.documentElement.dataset.theme === "dark";
    return { ...this.look, dark, plain: dark ? "#b5b1a8" : "#c9c4b8", soft: token("soft"), figureBoard: token("figure"), line: token("line-strong"), accent: token("accent") };
  }

  #keys() {
    const turns = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const zooms = { "+": 0.85, "=": 0.85, "-": 1.18 };
    this.canvas.addEventListener("keydown", (event) => {
      if (!(event.key in turns) && !(event.key in zooms)) return;
      event.preventDefault();
      const [dx, dy] = turns[event.key] ?? [0, 0];
      const around = new three.Spherical().setFromVector3(this.camera.position.clone().sub(this.controls.target));
      around.theta -= dx * 0.14;
      around.phi = Math.min(Math.max(around.phi + dy * 0.1, 0.05), this.controls.maxPolarAngle);
      around.radius = Math.min(Math.max(around.radius * (zooms[event.key] ?? 1), this.controls.minDistance), this.controls.maxDistance);
      this.camera.position.setFromSpherical(around).add(this.controls.target);
      this.draw();
    });
  }

  /** A press that does not drag picks the object under it. */
  #clicks() {
    let from = null;
    this.canvas.addEventListener("pointerdown", (event) => { from = [event.offsetX, event.offsetY]; });
    this.canvas.addEventListener("pointerup", (event) => {
      if (!from || Math.hypot(event.offsetX - from[0], event.offsetY - from[1]) > 5) return;
      const hit = this.cells.findIndex(({ place: { x, y, w, h } }) => event.offsetX >= x && event.offsetX < x + w && event.offsetY >= y && event.offsetY < y + h);
      if (hit >= 0) this.select(hit);
    });
  }
}
