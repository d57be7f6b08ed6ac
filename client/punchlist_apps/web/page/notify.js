// Browser notifications about lists that need attention, if turned on.

import { go, nameOf, needsAttention, showToast, watchers } from "./model.js";
import { safe } from "./text.js";

const ENABLED_KEY = "punchlist.notify";

function notifyAbout(card, before) {
  const hasRisen = (name) => card.counts[name] > (before?.counts[name] ?? 0);
  if (!needsAttention(card) || (before && !hasRisen("failed") && !hasRisen("paused"))) return;
  const isWaiting = (card.waiting ?? 0) > (before?.waiting ?? 0);
  const body = `A task ${hasRisen("failed") ? "failed" : isWaiting ? "waits for a yes" : "was paused"}.`;
  const notification = new Notification(safe(nameOf(card)), { body, icon: "/icon.svg", tag: card.conversation });
  notification.onclick = () => (window.focus(), go({ name: card.conversation }));
}

export const isNotifying = () => watchers.has(notifyAbout);

/** Turn notifications on or off. */
export async function toggleNotifications() {
  if (isNotifying()) {
    watchers.delete(notifyAbout);
    localStorage.removeItem(ENABLED_KEY);
    return showToast("Notifications are off.");
  }
  if (!("Notification" in window) || (await Notification.requestPermission()) !== "granted")
    return showToast("The browser does not allow notifications from this page.", "bad");
  watchers.add(notifyAbout);
  localStorage.setItem(ENABLED_KEY, "1");
  showToast("While this tab is open, you get a notification when a task fails, is paused or waits for a yes.");
}

const isGranted = "Notification" in window && Notification.permission === "granted";
if (localStorage.getItem(ENABLED_KEY) && isGranted) watchers.add(notifyAbout);
