import { readFile } from "node:fs/promises";

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

/**
 * Tells whether that very process still runs; one that is dying does. A zombie does not: it holds nothing any more, and
 * where its parent never takes it (a container whose PID 1 does not reap) it stays for ever. PID 1 of a namespace becomes
 * one only after every other process of the namespace is gone.
 */
export async function stillRuns(process: ProcessIdentity): Promise<boolean> {
  const now = await readStat(process.pid);
  if (now === undefined || now.state === "Z" || now.state === "X") return false;
  return now.startTicks === process.startTicks && (await readBootId()) === process.bootId;
}

/** The parent of a process as its pid, undefined when there is no such process. */
export async function parentOf(pid: number): Promise<number | undefined> {
  return (await readStat(pid))?.parent;
}

async function readStat(pid: number): Promise<{ state: string; parent: number; startTicks: string } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined); // gone between two looks
  if (text === undefined) return undefined;
  // The program's name is in parentheses and may hold anything; the fields after the last one are plain. (proc(5))
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", parent: Number(fields[1]), startTicks: fields[19] ?? "" };
}

async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "unknown")).trim();
}
