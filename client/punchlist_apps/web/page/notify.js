// Notifications and a sound about tasks that need you, if turned on, and the number on the icon of the page.

import { effect } from "./vendor.js";
import { COMMANDS } from "./commands.js";
import { go, nameOf, showToast, watchers } from "./model.js";
import { isForOthers, needsCount, wordsOf } from "./needs.js";
import { safe } from "./text.js";

/** Return what a list needs since its previous card. */
function findNew(card, before) {
  const known = new Set((before?.needs ?? []).map(({ id, since }) => `${id} ${since}`));
  return (card.needs ?? []).filter((need) =>
    need.kind !== "check" && !known.has(`${need.id} ${need.since}`) && !isForOthers(need));
}

function notifyAbout(card, before) {
  for (const need of findNew(card, before)) {
    const words = wordsOf(need);
    const body = `${need.id} ${safe(need.title)} ${words[0].toLowerCase()}${words.slice(1)}`;
    const tag = `${card.conversation} ${need.id}`;
    try {
      const notification = new Notification(safe(nameOf(card)), { body, icon: "/icon.svg", tag });
      notification.onclick = () => (window.focus(), go({ screen: "inbox", rest: [card.conversation, need.id] }));
    } catch {
      return; // Chrome on Android shows notifications of service workers only.
    }
  }
}

const TONES = [[880, 0], [1320, 0.16]]; // frequency, and start in seconds
const TONE_S = 0.14;
const VOLUME = 0.05;
const REST_MS = 10_000;
let audio = null;
let soundedAt = -REST_MS;

function sound() {
  soundedAt = performance.now();
  audio ??= new AudioContext();
  const volume = new GainNode(audio, { gain: VOLUME });
  volume.connect(audio.destination);
  for (const [frequency, at] of TONES) {
    const tone = new OscillatorNode(audio, { frequency });
    tone.connect(volume);
    tone.start(audio.currentTime + at);
    tone.stop(audio.currentTime + at + TONE_S);
  }
}

/** Sound once for all that comes within ten seconds. */
function soundAbout(card, before) {
  if (findNew(card, before).length && performance.now() - soundedAt >= REST_MS) sound();
}

/** Return whether a setting is on, and a function that turns it on or off. `watch` is called for each changed list. */
function buildSwitch(key, watch, { on, off, allow }) {
  const isOn = () => watchers.has(watch);
  if (localStorage.getItem(key)) watchers.add(watch);
  const toggle = async () => {
    if (isOn()) {
      watchers.delete(watch);
      localStorage.removeItem(key);
      return showToast(off);
    }
    if (!(await allow())) return showToast("The browser does not allow notifications from this page.", "bad");
    watchers.add(watch);
    localStorage.setItem(key, "1");
    showToast(on);
  };
  return [isOn, toggle];
}

const isSupported = "Notification" in window;
if (!isSupported || Notification.permission !== "granted") localStorage.removeItem("punchlist.notify");

const [isNotifying, toggleNotifications] = buildSwitch("punchlist.notify", notifyAbout, {
  on: "While this tab is open, you get a notification when a task fails or waits for your yes.",
  off: "Notifications are off.",
  allow: async () => isSupported && (await Notification.requestPermission()) === "granted",
});

const [isSounding, toggleSound] = buildSwitch("punchlist.sound", soundAbout, {
  on: "While this tab is open, two soft tones say that a task fails or waits for your yes.",
  off: "The sound is off.",
  allow: () => (sound(), true),
});

effect(() => {
  navigator.setAppBadge?.(needsCount.value).catch(() => {}); // Allowed only to an installed page.
});

Object.assign(COMMANDS, {
  notify: {
    run: toggleNotifications,
    get title() {
      return isNotifying() ? "Stop notifications" : "Notify me when something fails or waits";
    },
  },
  sound: {
    run: toggleSound,
    get title() {
      return isSounding() ? "Stop the sound" : "Play a sound when something fails or waits";
    },
  },
});
