import { readFile, rename, writeFile } from "node:fs/promises";
import { recordOf, textOf } from "./json-shape.ts";
import type { NodePaths } from "./node-paths.ts";

/** Beside each disk: whose it is, and what proves that its claim existed in this very store. */
export interface ClaimRecord {
  readonly namespace: string;
  readonly name: string;
  /** The uid of the Node object: another store has another one. */
  readonly store: string;
  readonly resourceVersion: string;
  /** Written when the disk was found without its claim and nothing proved a deletion: from then on nothing will. */
  readonly kept?: true;
}

/** In one step, so that a killed node leaves the old record or the new one. */
export async function writeClaimRecord(paths: NodePaths, uid: string, record: ClaimRecord): Promise<void> {
  const path = paths.claimRecord(uid);
  await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Undefined where there is none, or none that can be read: that proves nothing. */
export async function readClaimRecord(paths: NodePaths, uid: string): Promise<ClaimRecord | undefined> {
  const text = await readFile(paths.claimRecord(uid), "utf8").catch(() => undefined); // none: no proof
  if (text === undefined) return undefined;
  try {
    const read = recordOf(JSON.parse(text));
    const [namespace, name] = [textOf(read.namespace), textOf(read.name)];
    const [store, resourceVersion] = [textOf(read.store), textOf(read.resourceVersion)];
    if (namespace === undefined || name === undefined || store === undefined || resourceVersion === undefined)
      return undefined;
    return { namespace, name, store, resourceVersion, ...(read.kept === true ? { kept: true } : {}) };
  } catch {
    return undefined; // half-written: no proof either
  }
}
