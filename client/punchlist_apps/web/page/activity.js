// What happened to one task, in its details.

import { html } from "./vendor.js";
import { undoCall } from "./commands.js";
import { canChange, versions } from "./model.js";
import { showVersions } from "./past.js";
import { Text } from "./parts.js";
import { Said, current, refresh } from "./story.js";
import { clock, safe } from "./text.js";

const MAX_EVENTS = 400;

/** Return whether an event is about a task, or about what waits for it. */
const isAbout = ({ event: { task, blocker } }, id) => task === id || task?.id === id || blocker === id;

/** The events of a task, newest first. A click shows the list at that version. */
export default function Activity({ task: id }) {
  queueMicrotask(refresh);
  const entries = (current.value ?? []).filter((entry) => isAbout(entry, id)).toReversed();
  return html`<ol class="story">${entries.slice(0, MAX_EVENTS).map((entry) => html`<${Entry} key=${entry.seq} entry=${entry} />`)}</ol>`;
}

const Entry = ({ entry }) => html`<li class=${versions.value.to === entry.version ? "here" : ""}>
  <button title=${`Version ${entry.version}: show the list as it was`}
    onClick=${() => showVersions({ to: entry.version })}>
    <span class="when">${clock(entry.at)}</span><span class="said"><${Said} of=${entry.event} /></span>
    <${Text} class="owner" of=${entry.actor} />
  </button>
  ${canChange.value && html`<button class="quiet" title=${`Undo this change by ${safe(entry.actor)}`}
    aria-label=${`Undo version ${entry.version}`} onClick=${() => undoCall(entry)}>↶</button>`}</li>`;
