/** A person of 1.75 m, cut out of board as architects do: something to compare with. */

import * as three from "./three.js";

export const FIGURE_M = 1.75;
const LABEL_PX = 20;

// Right half of the outline, from the neck down to the crotch: (x, y) in shares of the height. An arm hangs beside the trunk.
const OUTLINE = [
  [0.024, 0.888], [0.027, 0.852], [0.06, 0.832], [0.104, 0.815], [0.127, 0.78], [0.136, 0.7], [0.148, 0.6], [0.154, 0.53],
  [0.157, 0.47], [0.147, 0.435], [0.133, 0.46], [0.127, 0.53], [0.112, 0.62], [0.101, 0.71], [0.094, 0.755], [0.087, 0.7],
  [0.079, 0.63], [0.089, 0.55], [0.095, 0.47], [0.089, 0.36], [0.075, 0.27], [0.073, 0.19], [0.057, 0.07], [0.061, 0.032],
  [0.076, 0.012], [0.072, 0.001], [0.026, 0], [0.022, 0.05], [0.025, 0.16], [0.019, 0.27], [0.013, 0.4], [0, 0.462],
];

function silhouette() {
  const half = new three.SplineCurve(OUTLINE.map(([x, y]) => new three.Vector2(x, Math.max(0, y)))).getPoints(160);
  const at = ({ x, y }, side) => new three.Vector2(side * Math.max(0, x), Math.max(0, y)).multiplyScalar(FIGURE_M);
  const body = new three.Shape([...half.map((p) => at(p, 1)), ...[...half].reverse().map((p) => at(p, -1))]);
  const head = new three.Shape().absellipse(0, 0.936 * FIGURE_M, 0.044 * FIGURE_M, 0.064 * FIGURE_M, 0, 2 * Math.PI);
  return new three.ShapeGeometry([body, head], 24);
}

export class Figure {
  constructor() {
    this.material = new three.MeshBasicMaterial({ side: three.DoubleSide, toneMapped: false });
    this.mesh = new three.Mesh(silhouette(), this.material);
    this.label = new three.Sprite(new three.SpriteMaterial({ transparent: true, depthTest: false, sizeAttenuation: false, toneMapped: false }));
    this.label.position.y = FIGURE_M;
    this.label.center.set(0.5, -0.35);
    this.group = new three.Group();
    this.group.add(this.mesh, this.label);
  }

  /** Stand beside an object of this size. */
  beside(size) {
    this.group.position.set(-size.x / 2 - 0.5, 0, -0.12 * size.z);
  }

  /** Turn towards the viewer, upright. */
  face(camera) {
    this.mesh.rotation.y = Math.atan2(camera.position.x - this.group.position.x, camera.position.z - this.group.position.z);
  }

  tint(board, ink) {
    this.material.color.set(board);
    this.label.material.map?.dispose();
    this.label.material.map = written("1.75 m", ink);
    this.label.material.needsUpdate = true;
  }

  /** Keep the writing at the same size on the screen. @param pixels height of the cell. */
  scale(pixels, fov) {
    const height = (2 * Math.tan((fov * Math.PI) / 360) * LABEL_PX) / pixels;
    this.label.scale.set(4 * height, height, 1);
  }
}

function written(text, ink) {
  const canvas = document.createElement("canvas");
  canvas.width = 256;
  canvas.height = 64;
  const pen = canvas.getContext("2d");
  pen.font = '500 38px "Geist Mono", monospace';
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = ink;
  pen.fillText(text, 128, 34);
  const texture = new three.CanvasTexture(canvas);
  texture.colorSpace = three.SRGBColorSpace;
  return texture;
}
