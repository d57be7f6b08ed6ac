// Screens and views that are loaded when they are first shown, or when the browser is idle.

import { html, signal } from "./vendor.js";

const loaders = [];

const Unavailable = () => html`<div class="teach" role="alert"><h2>This part of the page could not be loaded</h2>
  <p>The server may have been updated. <button class="text" onClick=${() => location.reload()}>Reload</button></p></div>`;

/** Return a component for the default export of a module, where `load` is an `import()`. */
export function lazy(load) {
  const loaded = signal(null);
  let isRequested = false;
  const request = async () => {
    if (isRequested) return;
    isRequested = true;
    try {
      loaded.value = (await load()).default;
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

/** Load the other parts of the page one after the other, so that they open without the server. */
export function loadWhenIdle() {
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 1000));
  const loadNext = async () => {
    await loaders.shift()?.();
    if (loaders.length) idle(loadNext);
  };
  idle(loadNext);
}
