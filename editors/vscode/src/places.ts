// Places in code that tasks name: `path:line` in a title, a description or a link.

import * as os from "node:os";
import * as path from "node:path";
import type { Row } from "./wire.ts";

export interface Place {
  /** An absolute path. */
  file: string;
  /** From 1. */
  line: number;
}

const TODO = /\b(?:TODO|FIXME|XXX)\b(?:\([^)]*\))?[:\s-]*(.+)$/;
const MENTION = /(?<![\w.\-/~+@])([\w.\-/~+@]+):(\d{1,7})(?!\w)/g;

function absolute(name: string, root: string | null): string | null {
  if (name.startsWith("~/")) return path.join(os.homedir(), name.slice(2));
  if (path.isAbsolute(name)) return path.normalize(name);
  return root ? path.join(root, name) : null;
}

/** The places that a text names, with where in the text they stand. */
export function mentions(text: string, root: string | null): (Place & { start: number; end: number })[] {
  const found = [];
  for (const match of text.matchAll(MENTION)) {
    const [, name = ""] = match;
    const file = /[a-z_]/i.test(name) ? absolute(name, root) : null; // 12:36 is a time
    if (file) found.push({ file, line: Math.max(1, Number(match[2])), start: match.index, end: match.index + match[0].length });
  }
  return found;
}

/** The places of a task, those of its links first; whether a file is there, nobody has looked. */
export function placesOf(row: Row, root: string | null): Place[] {
  const linked = (row.links ?? []).filter((link) => link.kind === "path").flatMap((link) => {
    const [, name, line] = /^(.*?)(?::(\d+))?$/.exec(link.to) ?? [];
    const file = absolute(name ?? "", root);
    return file ? [{ file, line: Number(line ?? 1) }] : [];
  });
  return [...linked, ...mentions(`${row.title}\n${row.description ?? ""}`, root).map(({ file, line }) => ({ file, line }))];
}

/** A file as a task names it: below the project's directory without it. */
export function named(file: string, line: number, root: string | null): string {
  const within = root && file.startsWith(root + path.sep);
  return `${within ? file.slice(root.length + 1) : file}:${line}`;
}

/** What a comment says that is to be done. */
export const todoIn = (line: string): string | undefined => TODO.exec(line)?.[1]?.trimEnd().replace(/(?:\*\/|-->)$/, "").trimEnd() || undefined;
