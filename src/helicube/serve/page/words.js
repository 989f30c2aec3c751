/** Numbers as people read them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (value) => whole.format(value);
export const few = (value) => short.format(value);
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
export const length = (metres) => (metres < 0.995 ? `${few(metres * 100)} cm` : `${metres.toFixed(2)} m`);
export const seconds = (value) => (value < 9.95 ? `${value.toFixed(1)} s` : `${count(value)} s`);

/** 0.61 × 1.10 × 0.58 m: width, height, depth. */
export function size(extents) {
  const small = Math.max(...extents) < 0.995;
  const numbers = extents.map((value) => (small ? few(value * 100) : value.toFixed(2)));
  return `${numbers.join(" × ")} ${small ? "cm" : "m"}`;
}

export function bytes(value) {
  const power = Math.min(4, Math.floor(Math.log10(Math.max(value, 1)) / 3));
  return `${few(value / 1000 ** power)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

export function duration(value) {
  if (value < 90) return `${count(value)} s`;
  if (value < 5400) return `${count(value / 60)} min`;
  return value < 129600 ? `${few(value / 3600)} h` : `${few(value / 86400)} days`;
}
