// The versions of a list that are shown instead of the present: named in the address, moved by the time machine.

import { batch, effect, signal, untracked } from "./vendor.js";
import { call } from "./link.js";
import { attempt, list, listPath, past, showToast, versions } from "./model.js";
import { place, setQuery } from "./place.js";
import { buildRows } from "./rows.js";

const ADDRESS = /^(\d{1,15})(?:\.\.(\d{0,15}))?$/;
const STILL_MS = 250; // The address follows a moved handle after a pause.
const NOW = { from: null, to: null };

/** `{ version, rows }` of the version that is compared with a later one, once it has been read. */
export const base = signal(null);
export const isStripOpen = signal(false);
export const isPlaying = signal(false);

/** Return the versions that `318`, `207..318` or `207..` names; null if one of them doesn't exist. */
export function parseVersions(text, present) {
  const [, first, last] = ADDRESS.exec(text) ?? [];
  if (!first) return null;
  const ends = last ? [Number(first), Number(last)].sort((a, b) => a - b) : [Number(first)];
  if (ends[0] < 1 || ends.at(-1) > present) return null;
  if (last === undefined || ends[0] === ends[1]) return { from: null, to: ends[0] };
  return { from: ends[0], to: ends[1] ?? null };
}

export const formatVersions = ({ from, to }) => (from === null ? `${to ?? ""}` : `${from}..${to ?? ""}`);

let address = ""; // the versions that the address named last
effect(() => {
  const { name, query: { at = "" } } = place.value;
  if (!list.value || list.value.name !== name) return void (address = "");
  if (at === address) return;
  address = at;
  untracked(() => {
    const named = at ? parseVersions(at, list.value.rows.version) : NOW;
    if (named) batch(() => ([versions.value, isStripOpen.value] = [named, isStripOpen.value || at !== ""]));
    else {
      showToast(`The address names a version that is not there: ${at}`, "bad");
      setQuery({ at: "" });
    }
  });
});

let pause = 0;
effect(() => {
  const at = formatVersions(versions.value);
  clearTimeout(pause);
  if (!list.peek() || at === address) return;
  pause = setTimeout(() => {
    address = at;
    setQuery({ at });
  }, STILL_MS);
});

let isReading = false;
/** Read the versions to show, one request at a time. The last picture stays until the next one is there. */
async function read() {
  const shown = { to: past, from: base };
  for (const key in shown) if (versions.value[key] === null) shown[key].value = null;
  const findUnread = () =>
    Object.keys(shown).find((key) => versions.value[key] !== (shown[key].value?.version ?? null));
  if (isReading) return;
  isReading = true;
  for (let key; list.value && (key = findUnread()); ) {
    const { name } = list.value;
    const version = versions.value[key];
    if (version === null) {
      shown[key].value = null;
      continue;
    }
    const result = await attempt(() => call("GET", listPath(`/tasks?at_version=${version}`)));
    if (list.value?.name !== name || versions.value[key] === null) continue;
    if (result) shown[key].value = { version, rows: buildRows({ ...result, version }) };
    else versions.value = NOW;
  }
  isReading = false;
}
effect(() => {
  versions.value;
  list.value?.name;
  untracked(read);
});

/** Show versions, in the time machine. A member that is left out stays, and the newest version is the present. */
export function showVersions({ from = versions.value.from, to = versions.value.to }) {
  const present = list.value?.rows.version ?? 0;
  to = to === null || to >= present ? null : Math.max(1, to);
  from = from === null || from < 1 || from >= (to ?? present) ? null : from;
  const { from: oldFrom, to: oldTo } = versions.value;
  isStripOpen.value = true;
  if (from !== oldFrom || to !== oldTo) versions.value = { from, to };
}

export function backToNow() {
  isPlaying.value = false;
  versions.value = NOW;
}

export function goToVersion(step) {
  showVersions({ to: (versions.value.to ?? list.value.rows.version) + step });
}

export function toggleStrip() {
  if (isStripOpen.value) backToNow();
  isStripOpen.value = !isStripOpen.value;
}
