/** The floor: a size grid that fades out, and the shadow that the object throws on it. */

import * as three from "./three.js";

const VERTEX = `
varying vec2 place;
void main() {
  vec4 world = modelMatrix * vec4(position, 1.0);
  place = world.xz;
  gl_Position = projectionMatrix * viewMatrix * world;
}`;

// Lines one pixel wide at any distance: the distance to the nearest one, measured in pixels by its derivative.
const FRAGMENT = `
uniform vec3 ink;
uniform float cell, major, radius, opacity;
varying vec2 place;
float lines(float size) {
  vec2 at = place / size;
  vec2 width = fwidth(at);
  vec2 near = abs(fract(at - 0.5) - 0.5) / width;
  float thin = 1.0 - smoothstep(0.35, 0.65, max(width.x, width.y));
  return (1.0 - min(min(near.x, near.y), 1.0)) * thin;
}
void main() {
  float fade = 1.0 - smoothstep(0.25 * radius, radius, length(place));
  float strength = max(0.42 * lines(cell), lines(major));
  gl_FragColor = vec4(ink, strength * fade * opacity);
  #include <colorspace_fragment>
}`;

export class Floor {
  constructor() {
    this.grid = new three.Mesh(
      new three.PlaneGeometry(2, 2).rotateX(-Math.PI / 2),
      new three.ShaderMaterial({
        vertexShader: VERTEX, fragmentShader: FRAGMENT, transparent: true, depthWrite: false,
        uniforms: { ink: { value: new three.Color() }, cell: { value: 0.2 }, major: { value: 1 }, radius: { value: 4 }, opacity: { value: 0.5 } },
      }),
    );
    this.shadow = new three.Mesh(new three.PlaneGeometry(2, 2).rotateX(-Math.PI / 2), new three.ShadowMaterial({ opacity: 0.2, depthWrite: false }));
    this.shadow.receiveShadow = true;
    this.shadow.position.y = -0.0005;
    this.group = new three.Group();
    this.group.add(this.shadow, this.grid);
  }

  /** Cells of 10, 20 or 50 cm or decimals of them, whichever suits an object of this radius in metres. @returns the cell. */
  fit(radius) {
    const power = 10 ** Math.ceil(Math.log10(radius / 6) + 1e-9);
    const cell = power * ([0.2, 0.5].find((share) => share * power >= radius / 6) ?? 1);
    this.grid.material.uniforms.major.value = cell < power ? power : 10 * power;
    this.grid.material.uniforms.cell.value = cell;
    this.grid.material.uniforms.radius.value = radius * 5;
    this.group.scale.setScalar(radius * 5);
    return cell;
  }

  tint(ink, dark) {
    this.grid.material.uniforms.ink.value.set(ink);
    this.grid.material.uniforms.opacity.value = dark ? 0.6 : 0.75;
    this.shadow.material.opacity = dark ? 0.45 : 0.17;
  }
}
