/** Whether the browser draws on the processor, for want of a graphics card.
 *
 * Shadows and movement then take time from the object.
 */

export const drawsOnProcessor = probe();

function probe() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software/i.test(name);
}
