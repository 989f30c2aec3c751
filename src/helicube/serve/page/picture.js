/** Thumbnails drawn here, for servers that draw none. */

import * as three from "./three.js";
import { Cell } from "./cell.js";

const WIDTH = 264, HEIGHT = 198, FOV = 30;
const VIEW = new three.Vector3(0.62, 0.42, 1).normalize();

/** A picture of a model by itself, as a data URL; the model is used up. */
export function picture(stage, model) {
  const cell = new Cell(0);
  cell.show(model, Infinity);
  cell.tint({ ...stage.colors(), colors: true, wire: false, grid: false, figure: false });
  const camera = new three.PerspectiveCamera(FOV, WIDTH / HEIGHT, 0.001, 1000), radius = model.size.length() / 2;
  const target = new three.Vector3(0, model.size.y / 2, 0);
  camera.position.copy(target).addScaledVector(VIEW, (radius * 1.02) / Math.sin((FOV * Math.PI) / 360));
  camera.lookAt(target);
  const pixels = read(stage.renderer, cell.scene, camera);
  cell.dispose();
  return drawn(pixels);
}

function read(renderer, scene, camera) {
  const paper = new three.WebGLRenderTarget(WIDTH, HEIGHT, { samples: 4 });
  const pixels = new Uint8Array(4 * WIDTH * HEIGHT);
  renderer.setRenderTarget(paper);
  renderer.setScissorTest(false);
  renderer.clear();
  renderer.render(scene, camera);
  renderer.readRenderTargetPixels(paper, 0, 0, WIDTH, HEIGHT, pixels);
  renderer.setRenderTarget(null);
  renderer.setScissorTest(true);
  paper.dispose();
  return pixels;
}

/** WebGL counts rows from the bottom, and a render target holds linear light. */
function drawn(pixels) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: WIDTH, height: HEIGHT });
  const pen = canvas.getContext("2d"), image = pen.createImageData(WIDTH, HEIGHT);
  const curve = Uint8ClampedArray.from({ length: 256 }, (_, i) => 255 * (i / 255) ** (1 / 2.2));
  for (let y = 0; y < HEIGHT; y++)
    for (let x = 0; x < WIDTH; x++) {
      const from = 4 * ((HEIGHT - 1 - y) * WIDTH + x), to = 4 * (y * WIDTH + x);
      for (let c = 0; c < 3; c++) image.data[to + c] = curve[pixels[from + c]];
      image.data[to + 3] = pixels[from + 3];
    }
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL("image/png");
}
