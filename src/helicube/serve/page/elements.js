/** Finding and making elements. */

export function find(selector) {
  const element = document.querySelector(selector);
  if (!element) throw new Error(`the page has no ${selector}`);
  return element;
}

/** make("a", { class: "x", href: "/" }, "text", child): attributes that are null or false are left out. */
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function makeSvg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
