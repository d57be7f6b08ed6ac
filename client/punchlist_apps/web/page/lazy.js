// Screens and views that are loaded when they are first shown, or when the browser is idle.

import { html, signal, useLayoutEffect } from "./vendor.js";

const loaders = [];

const Unavailable = () => html`<div class="teach" role="alert"><h2>This part of the page could not be loaded</h2>
  <p>The server may have been updated. <button class="text" onClick=${() => location.reload()}>Reload</button></p></div>`;

const styles = new Map();

/** Load a style sheet of the page. If that fails, its part of the page is shown without a style. */
function loadStyle(name) {
  if (!styles.has(name)) {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `/${name}.css` });
    styles.set(name, new Promise((done) => {
      link.onload = done;
      link.onerror = () => (styles.delete(name), link.remove(), done());
    }));
    document.head.append(link);
  }
  return styles.get(name);
}

/** Return a component for the default export of a module, where `load` is an `import()`, and `style` its style sheet. */
export function lazy(load, style) {
  const loaded = signal(null);
  let isRequested = false;
  const request = async () => {
    if (isRequested) return;
    isRequested = true;
    if (loaded.value === Unavailable) loaded.value = null;
    try {
      const [module] = await Promise.all([load(), style && loadStyle(style)]);
      loaded.value = module.default;
    } catch {
      isRequested = false;
      loaded.value = Unavailable;
    }
  };
  loaders.push(request);
  return (props) => {
    // A part that could not be loaded is requested again when it is next shown.
    useLayoutEffect(() => void request(), []);
    const View = loaded.value;
    return View ? html`<${View} ...${props} />` : html`<p class="hush" role="status">Opening…</p>`;
  };
}

/** Load a module when the browser is idle. */
export const loadLater = (load) => loaders.unshift(() => load().catch(() => {}));

/** Load the other parts of the page one after the other, so that they open without the server. */
export function loadWhenIdle() {
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 1000));
  const loadNext = async () => {
    await loaders.shift()?.();
    if (loaders.length) idle(loadNext);
  };
  idle(loadNext);
}
