// The tools of a list: its filters as chips with counts, its saved views, its grouping and order.

import { html, useState } from "./vendor.js";
import { CHIPS, countChips, listOffers, splitWords } from "./filter.js";
import { FilterField } from "./frame.js";
import { GROUPINGS, SORTS, grouping, setGrouping, setSorting, sorting } from "./groups.js";
import { computedFromRows, filter, now, toggleWord, visibleRows } from "./model.js";
import { ViewLink, currentView, deleteView, isViewDeletable, isViewSavable, privateViews, saveView, sharedViews } from "./views.js";
import { safe } from "./text.js";

const MINUTE_MS = 60_000;
// Tasks become late without a change.
const chipCounts = computedFromRows(
  (rows) => countChips(filter.value, rows), () => [Math.floor(now.value / MINUTE_MS)]);

export function Tools({ children }) {
  return html`<div class="tools" role="region" aria-label="Filter, group and sort">
    <div class="chips" role="group" aria-label="Filters">
      ${visibleRows.value && CHIPS.map(([name, title]) => html`<${Chip} key=${name} name=${name} title=${title} />`)}
      <${Offers} />
      ${sharedViews.value.map((view) => html`<${ViewLink} key=${`all ${view.name}`} class="chip" view=${view} />`)}
      ${privateViews.value.map((view) => html`<${ViewLink} key=${view.name} class="chip" view=${view} />`)}
    </div>
    <${FilterField} of=${filter} label="Filter tasks" />
    <span class="room"></span>
    <${Pick} title="Group" names=${GROUPINGS} value=${grouping.value} onPick=${setGrouping} />
    <${Pick} title="Sort" names=${SORTS} value=${sorting.value} onPick=${setSorting} />
    ${isViewSavable.value && html`<button class="quiet" onClick=${saveView}>Save view</button>`}
    ${isViewDeletable.value && html`<button class="quiet" onClick=${deleteView}>Delete view</button>`}
    ${children}
  </div>`;
}

function Chip({ name, title }) {
  const isOn = splitWords(filter.value.toLowerCase()).includes(`is:${name}`);
  return html`<button class=${`chip c-${name}`} aria-pressed=${isOn ? "true" : "false"}
    onClick=${() => toggleWord(`is:${name}`)}>${title} <b class="n">${chipCounts.value[name].toLocaleString()}</b></button>`;
}

const Pick = ({ title, names, value, onPick }) => html`<select class="pick" aria-label=${title}
  onChange=${(event) => onPick(event.currentTarget.value)}>
  ${names.map((name) => html`<option key=${name} value=${name} selected=${name === value}>
    ${title}: ${name}</option>`)}</select>`;

const MAX_OFFERS = 40;

/** The labels, owners and priorities of the list as filter words. They are counted once the pointer or focus is near. */
function Offers() {
  const [isNear, setNear] = useState(false);
  const words = splitWords(filter.value);
  const sections = isNear && visibleRows.value ? listOffers(filter.value, visibleRows.value) : [];
  const approach = () => setNear(true);
  const pick = (event) => {
    toggleWord(event.currentTarget.value);
    event.currentTarget.value = "";
  };
  return html`<select class="chip offers" aria-label="Add a filter" onPointerEnter=${approach} onPointerDown=${approach}
    onFocus=${approach} onBlur=${() => setNear(false)} onChange=${pick}>
    <option value="">+ Filter</option>
    ${sections.map(([title, offers]) => html`<optgroup key=${title} label=${title}>
      ${offers.slice(0, MAX_OFFERS).map(([word, text, count]) => html`<option key=${word} value=${word}>
        ${words.includes(word) ? "✓ " : ""}${safe(text)} (${count})</option>`)}</optgroup>`)}
  </select>`;
}
