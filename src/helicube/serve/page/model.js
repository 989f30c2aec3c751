/** A mesh from the server, with its plain, coloured and wireframe looks. */

import * as three from "./three.js";
import { bytesOf } from "./server.js";

const loader = new three.GLTFLoader();

export class Model {
  /** Fetch and read a GLB, which is +Y up whatever the object's other files are. */
  static async load(url) {
    const gltf = await loader.parseAsync(await bytesOf(url), "");
    let geometry = null;
    gltf.scene.traverse((node) => { if (node.isMesh) geometry ??= node.geometry; });
    if (!geometry) throw new Error(`${url} holds no mesh`);
    return new Model(geometry);
  }

  constructor(geometry) {
    geometry.computeBoundingBox();
    // The stage has a floor, wherever the file has its origin.
    const { min, max } = geometry.boundingBox;
    geometry.translate(-(min.x + max.x) / 2, -min.y, -(min.z + max.z) / 2);
    geometry.computeBoundingBox();
    if (!geometry.attributes.normal) geometry.computeVertexNormals();
    this.geometry = geometry;
    this.hasColors = Boolean(geometry.attributes.color);
    // The nearer surface wins over its own lines without this push.
    this.material = new three.MeshStandardMaterial({ roughness: 0.78, metalness: 0, polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 1 });
    this.surface = new three.Mesh(geometry, this.material);
    this.surface.castShadow = this.surface.receiveShadow = true;
    this.lines = null;
    this.group = new three.Group();
    this.group.add(this.surface);
  }

  get size() { return this.geometry.boundingBox.getSize(new three.Vector3()); }
  get numTriangles() { return (this.geometry.index ?? this.geometry.attributes.position).count / 3; }

  /** @param {{colors: boolean, wire: boolean, plain: string, accent: string}} look */
  dress({ colors, wire, plain, accent }) {
    const coloured = colors && this.hasColors;
    if (this.material.vertexColors !== coloured) this.material.needsUpdate = true;
    this.material.vertexColors = coloured;
    this.material.color.set(coloured ? "#ffffff" : plain);
    if (wire && !this.lines) {
      this.lines = new three.LineSegments(new three.WireframeGeometry(this.geometry), new three.LineBasicMaterial({ transparent: true, opacity: 0.6 }));
      this.group.add(this.lines);
    }
    if (this.lines) {
      this.lines.visible = wire;
      this.lines.material.color.set(accent);
    }
  }

  /** Show only what lies below this share of the height; 1 shows all. */
  reveal(share) {
    const planes = share < 1 ? [new three.Plane(new three.Vector3(0, -1, 0), share * this.size.y * 1.02)] : null;
    this.material.side = planes ? three.DoubleSide : three.FrontSide;
    this.material.clippingPlanes = planes;
    if (this.lines) this.lines.material.clippingPlanes = planes;
    this.material.needsUpdate = true;
  }

  dispose() {
    this.geometry.dispose();
    this.material.dispose();
    this.lines?.geometry.dispose();
    this.lines?.material.dispose();
  }
}
