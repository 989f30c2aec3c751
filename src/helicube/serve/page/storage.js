/** Small things kept in the browser; where storage is off, nothing is kept and nothing breaks. */

export function keep(key, value, storage = "localStorage") {
  try {
    if (value === null) window[storage].removeItem(key);
    else window[storage].setItem(key, value);
  } catch { /* private mode or a full disk */ }
}

export function kept(key, storage = "localStorage") {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}
