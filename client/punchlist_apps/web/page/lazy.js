// Screens and views that are loaded when they are first shown, or when the browser is idle.

import { html, signal } from "./vendor.js";

const loaders = [];

const Unavailable = () => html`<div class="teach" role="alert"><h2>This part of the page could not be loaded</h2>
  <p>The server may have been updated. <button class="text" onClick=${() => location.reload()}>Reload</button></p></div>`;

/** Load the styles of all later parts once. Without them, the parts are still usable. */
const loadStyles = () => (styles ??= new Promise((done) => {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/late.css" });
  link.onload = link.onerror = done;
  document.head.append(link);
}));
let styles;

/** Return a component for the default export of a module, where `load` is an `import()`. */
export function lazy(load) {
  const loaded = signal(null);
  let isRequested = false;
  const request = async () => {
    if (isRequested) return;
    isRequested = true;
    try {
      const [part] = await Promise.all([load(), loadStyles()]);
      loaded.value = part.default;
    } catch (error) {
      console.warn(error);
      isRequested = false;
      loaded.value = Unavailable;
    }
  };
  loaders.push(request);
  return (props) => {
    if (!loaded.value) request();
    const View = loaded.value;
    return View ? html`<${View} ...${props} />` : html`<p class="hush" role="status">Opening…</p>`;
  };
}

/** Load a module when the browser is idle. */
export const loadLater = (load) => loaders.push(load);

/** Load the other parts of the page one after the other, so that they open without the server. */
export function loadWhenIdle() {
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 1000));
  const loadNext = async () => {
    await loaders.shift()?.();
    if (loaders.length) idle(loadNext);
  };
  idle(loadNext);
}
