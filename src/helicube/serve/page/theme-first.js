// Runs before the first paint, so that a page in dark colours never flashes white.
(() => {
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* storage is off: follow the system */ }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = kept || (dark ? "dark" : "light");
})();
