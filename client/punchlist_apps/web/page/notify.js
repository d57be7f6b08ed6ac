// Notifications, for those who ask for them: a list begins to need somebody.

import { go, nameOf, needsYou, say, watchers } from "./model.js";
import { safe } from "./text.js";

const KEPT = "punchlist.notify";

function tell(card, before) {
  const rose = (name) => card.counts[name] > (before?.counts[name] ?? 0);
  if (!needsYou(card) || (before && !rose("failed") && !rose("paused"))) return;
  const isWaiting = (card.waiting ?? 0) > (before?.waiting ?? 0);
  const body = `A task ${rose("failed") ? "failed" : isWaiting ? "waits for a yes" : "was paused"}.`;
  const shown = new Notification(safe(nameOf(card)), { body, icon: "/icon.svg", tag: card.conversation });
  shown.onclick = () => (window.focus(), go({ name: card.conversation }));
}

export const isNotifying = () => watchers.has(tell);

/** Begin or end notifications. */
export async function notify() {
  if (isNotifying()) {
    watchers.delete(tell);
    localStorage.removeItem(KEPT);
    return say("Notifications are off.");
  }
  if (!("Notification" in window) || (await Notification.requestPermission()) !== "granted")
    return say("The browser allows this page no notifications.", "bad");
  watchers.add(tell);
  localStorage.setItem(KEPT, "1");
  say("You are notified when a task fails, is paused or waits for a yes, as long as this tab is open.");
}

if (localStorage.getItem(KEPT) && "Notification" in window && Notification.permission === "granted") watchers.add(tell);
