// Places in code (`path:line`) in titles, descriptions and links of tasks.

import * as os from "node:os";
import * as path from "node:path";
import type { Row } from "./wire.ts";

export interface Place {
  /** Absolute path. */
  file: string;
  /** Counted from 1. */
  line: number;
}

const TODO = /\b(?:TODO|FIXME|XXX)\b(?:\([^)]*\))?[:\s-]*(.+)$/;
const MENTION = /(?<![\w.\-/~+@])([\w.\-/~+@]+):(\d{1,7})(?!\w)/g;

function absolute(name: string, root: string | null): string | null {
  if (name.startsWith("~/")) return path.join(os.homedir(), name.slice(2));
  if (path.isAbsolute(name)) return path.normalize(name);
  return root ? path.join(root, name) : null;
}

/** Return the places in a text, with their positions. */
export function findPlaces(text: string, root: string | null): (Place & { start: number; end: number })[] {
  const places = [];
  for (const match of text.matchAll(MENTION)) {
    const [, name = ""] = match;
    const file = /[a-z_]/i.test(name) ? absolute(name, root) : null; // 12:36 is a time.
    if (file) places.push({ file, line: Math.max(1, Number(match[2])), start: match.index, end: match.index + match[0].length });
  }
  return places;
}

/** Return the places of a task, with those from its links first. The files may not exist. */
export function placesOf(row: Row, root: string | null): Place[] {
  const linked = (row.links ?? []).filter((link) => link.kind === "path").flatMap((link) => {
    const [, name, line] = /^(.*?)(?::(\d+))?$/.exec(link.to) ?? [];
    const file = absolute(name ?? "", root);
    return file ? [{ file, line: Number(line ?? 1) }] : [];
  });
  return [...linked, ...findPlaces(`${row.title}\n${row.description ?? ""}`, root).map(({ file, line }) => ({ file, line }))];
}

/** Format a place, relative to the project's directory if the file is in it. */
export function formatPlace(file: string, line: number, root: string | null): string {
  const within = root && file.startsWith(root + path.sep);
  return `${within ? file.slice(root.length + 1) : file}:${line}`;
}

/** Return the text of a TODO comment, or undefined. */
export const findTodo = (line: string): string | undefined => TODO.exec(line)?.[1]?.trimEnd().replace(/(?:\*\/|-->)$/, "").trimEnd() || undefined;
