/** The one place that names the version of three.js. */

export * from "./vendor/three-0.187.0/three.module.js";
export { OrbitControls } from "./vendor/three-0.187.0/OrbitControls.js";
export { GLTFLoader } from "./vendor/three-0.187.0/GLTFLoader.js";
