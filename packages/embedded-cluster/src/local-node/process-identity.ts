import { readFile } from "node:fs/promises";
import type { Logger } from "pino";
import { numberOf, recordOf, textOf } from "./json-shape.ts";

/** A process as nobody else can be it: its pid, when it started, and in which boot of the machine. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
  readonly bootId: string;
}

/** Reads the identity of a running process, undefined when there is none of that pid (any more). */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readStat(pid);
  if (stat === undefined) return undefined;
  return { pid, startTicks: stat.startTicks, bootId: await readBootId() };
}

/** Tells whether that very process still exists; one that is dying still does. */
export async function stillExists(process: ProcessIdentity): Promise<boolean> {
  const now = await identifyProcess(process.pid);
  return now !== undefined && now.startTicks === process.startTicks && now.bootId === process.bootId;
}

/** The parent of a process as its pid, undefined when there is no such process. */
export async function parentOf(pid: number): Promise<number | undefined> {
  return (await readStat(pid))?.parent;
}

async function readStat(pid: number): Promise<{ parent: number; startTicks: string } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined); // gone between two looks
  if (text === undefined) return undefined;
  // The program's name is in parentheses and may hold anything; the fields after the last one are plain. (proc(5))
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { parent: Number(fields[1]), startTicks: fields[19] ?? "" };
}

async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "unknown")).trim();
}

/** How often a dying process is looked at again. Only ever at the start of a node, for what its earlier life left. */
const lookAgainMs = 20;

/**
 * Resolves when the process that a record names is gone. It is expected to be dying; after `patienceMs` it is killed.
 * The record was written by this node (beforeStart); an unreadable one names nothing.
 */
export async function endLeftOver(record: string, patienceMs: number, log: Logger): Promise<void> {
  const left = parseIdentity(record);
  if (left === undefined) return;
  const patience = Date.now() + patienceMs;
  let killed = false;
  while (await stillExists(left)) {
    if (!killed && Date.now() > patience) {
      killed = true;
      log.warn({ pid: left.pid }, "a pod of the node's earlier life still ran; it is killed");
      killIfThere(left.pid);
    }
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
}

function parseIdentity(record: string): ProcessIdentity | undefined {
  try {
    const read = recordOf(JSON.parse(record));
    const [pid, startTicks, bootId] = [numberOf(read.pid, 0), textOf(read.startTicks), textOf(read.bootId)];
    if (!Number.isSafeInteger(pid) || pid <= 1 || startTicks === undefined || bootId === undefined) return undefined;
    return { pid, startTicks, bootId };
  } catch {
    return undefined;
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
