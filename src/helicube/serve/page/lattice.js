/** Dots that light up with the tokens, from the floor to the top: shown until there is a surface. */

import * as three from "./three.js";

const SIDE = 7;

export class Lattice {
  constructor() {
    const places = [];
    for (let y = 0; y < SIDE; y++)
      for (let z = 0; z < SIDE; z++)
        for (let x = 0; x < SIDE; x++) places.push(x / (SIDE - 1) - 0.5, y / (SIDE - 1), z / (SIDE - 1) - 0.5);
    this.count = places.length / 3;
    const geometry = new three.BufferGeometry();
    geometry.setAttribute("position", new three.Float32BufferAttribute(places, 3));
    geometry.setAttribute("color", new three.BufferAttribute(new Float32Array(3 * this.count), 3));
    this.points = new three.Points(geometry, new three.PointsMaterial({ size: 4, sizeAttenuation: false, vertexColors: true }));
    this.on = new three.Color();
    this.off = new three.Color();
    this.share = 0;
    this.points.visible = false;
  }

  /** @param box (x, y, z) in metres. */
  fit(box, pixels) {
    this.points.scale.set(...box);
    this.points.material.size = 4 * pixels;
  }

  tint(on, off) {
    this.on.set(on);
    this.off.set(off);
    this.light(this.share);
  }

  light(share) {
    this.share = share;
    const colors = this.points.geometry.attributes.color, lit = Math.round(share * this.count);
    for (let i = 0; i < this.count; i++) {
      const { r, g, b } = i < lit ? this.on : this.off;
      colors.setXYZ(i, r, g, b);
    }
    colors.needsUpdate = true;
  }
}
