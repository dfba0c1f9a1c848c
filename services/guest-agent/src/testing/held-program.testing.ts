import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { addon } from "./addon.testing.ts";

/** A program that the kernel does not begin before the test lets it: a gate within posix_spawn itself. */
export interface HeldProgram {
  readonly path: string;
  /** Resolves once somebody is at the gate: a process that is made, and is not yet the program. */
  readonly reached: Promise<void>;
  release(): void;
}

const setLease = 1024;
const getLease = 1025;
const setSignal = 10;
const writeLease = 1;
const noLease = 2;
/** SIGURG: ignored where nobody listens, unlike SIGIO. */
const signalNumber = 23;
const gates = new Map<number, { take(): boolean; reach(): void }>();
process.on("SIGURG", () => {
  for (const [fd, gate] of gates) if (gate.take()) gates.delete(fd) && gate.reach();
});

/** Whether the file system of the temporary directory gives leases. */
export async function canHoldPrograms(): Promise<boolean> {
  const fcntl = (await addon()).load(null).func("int fcntl(int fd, int command, long argument)");
  const directory = mkdtempSync(join(tmpdir(), "holdfast-held-"));
  writeFileSync(join(directory, "file"), "");
  const fd = openSync(join(directory, "file"), "r");
  try {
    return fcntl(fd, setLease, writeLease) === 0;
  } finally {
    closeSync(fd);
    rmSync(directory, { recursive: true });
  }
}

/**
 * Holds a shell script by a lease on its file: whoever wants to read it, as exec does, waits until the lease is given up. The kernel takes
 * it back by itself after 45 s. Throws where the file system gives no leases.
 */
export async function heldProgram(script: string): Promise<HeldProgram> {
  const fcntl = (await addon()).load(null).func("int fcntl(int fd, int command, long argument)");
  const directory = mkdtempSync(join(tmpdir(), "holdfast-held-"));
  const path = join(directory, "held");
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const fd = openSync(path, "r");
  const reached = Promise.withResolvers<void>();
  const release = (): void => {
    fcntl(fd, setLease, noLease);
  };
  onTestFinished(() => {
    gates.delete(fd);
    release();
    closeSync(fd);
    rmSync(directory, { recursive: true, force: true });
  });
  if (fcntl(fd, setSignal, signalNumber) !== 0 || fcntl(fd, setLease, writeLease) !== 0) {
    throw new Error(`no lease can be had on ${path}`);
  }
  gates.set(fd, { take: () => fcntl(fd, getLease, 0) !== writeLease, reach: reached.resolve });
  return { path, reached: reached.promise, release };
}
