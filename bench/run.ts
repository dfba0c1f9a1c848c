import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { refuseFlags } from "../tools/read-flags.ts";
import { guestParts, guestRows } from "./guest/guest-rows.ts";
import { type Row, tableOf } from "./row.ts";

/** `npm run bench -- guest`, or one part of it as `guest:output`: prints a table and writes bench/results/latest.json. Never fails for a figure. */
const suites: Readonly<Record<string, (part?: string) => Promise<readonly Row[]>>> = { guest: guestRows };

const wished = process.argv.slice(2);
const names = wished.length > 0 ? wished : Object.keys(suites);
for (const wish of names) {
  const [name = "", part, ...more] = wish.split(":");
  if (suites[name] === undefined)
    refuseFlags("bench", `no benchmark ${JSON.stringify(name)}; there are ${Object.keys(suites).join(", ")}`);
  if (more.length > 0 || (part !== undefined && !guestParts.includes(part)))
    refuseFlags("bench", `no part ${JSON.stringify(wish)}; there are ${guestParts.join(", ")}`);
}
const rows: Row[] = [];
const loadBefore = loadavg()[0] ?? Number.NaN;
for (const wish of names) {
  const [name = "", part] = wish.split(":");
  rows.push(...((await suites[name]?.(part)) ?? []));
}
const machine = { cores: cpus().length, loadBefore, loadAfter: loadavg()[0] ?? Number.NaN, node: process.version };
console.log(tableOf(rows));
console.log(
  `${machine.cores} cores, load ${loadBefore.toFixed(1)} before and ${machine.loadAfter.toFixed(1)} after, Node ${machine.node}`,
);
const directory = join(import.meta.dirname, "results");
mkdirSync(directory, { recursive: true });
const result = {
  at: new Date().toISOString(),
  machine,
  rows: rows.map((row) => ({ ...row, ratio: row.ours / row.theirs })),
};
writeFileSync(join(directory, "latest.json"), `${JSON.stringify(result, undefined, 2)}\n`);
