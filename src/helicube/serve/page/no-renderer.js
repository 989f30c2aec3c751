/** What stands in for WebGL where the browser has none: nothing is drawn, and everything else works. */

export class NoRenderer {
  shadowMap = {};
  setScissorTest() {}
  setViewport() {}
  setScissor() {}
  setPixelRatio() {}
  setSize() {}
  clear() {}
  render() {}
}
