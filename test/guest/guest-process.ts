import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/async";
import { type ExecutionId, isExecutionId, podUidOf } from "@holdfast/contract";
import { guestDialler, type LinkedGuest } from "@holdfast/guest-client";
import type { ExecutionEvent, ExecutionWish, GuestAddress } from "@holdfast/workspace";
import { onTestFinished } from "vitest";
import { bundleGuestAgent } from "../../services/guest-agent/bundle.ts";

export const host = "127.33.0.1";

export interface GuestProcess {
  readonly child: ChildProcess;
  readonly address: GuestAddress;
  readonly root: string;
  readonly exited: Promise<unknown>;
}

/** Runs the bundled agent as its pod would. Given a former one, takes its place: same pod, another process. */
export async function guestProcess(former?: GuestProcess): Promise<GuestProcess> {
  const { entry } = await bundleGuestAgent();
  const root = former?.root ?? mkdtempSync(join(tmpdir(), "holdfast-guest-"));
  const podUid = former?.address.podUid ?? podUidOf(randomUUID());
  const child = spawn(process.execPath, [entry], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...process.env,
      HOME: root, // as in a pod; login shells must not run what this machine's user has set up
      HOLDFAST_AGENT_TOKEN: podUid,
      HOLDFAST_AGENT_HOST: host,
      HOLDFAST_AGENT_PORT: String(former?.address.port ?? 0),
      HOLDFAST_AGENT_SOCKET: `${root}.sock`,
      HOLDFAST_WORKSPACE_ROOT: root,
    },
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
    endProcessesIn(root);
    rmSync(root, { recursive: true, force: true });
    for (const path of [`${root}.sock`, `${root}.sock.state`]) rmSync(path, { recursive: true, force: true });
  });
  let log = "";
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.on("data", (chunk) => {
      log += chunk;
      const match = /serving on [\d.]+:(\d+),/.exec(log);
      if (match) resolve(Number(match[1]));
    });
    void exited.then(() => reject(new Error(`the agent ended:\n${log}`)));
  });
  return { child, address: { host, port, podUid }, root, exited };
}

/** What a killed agent leaves behind: everything that stands in the test's own workspace. */
function endProcessesIn(root: string): void {
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${entry}/cwd`).startsWith(root)) process.kill(Number(entry), "SIGKILL");
    } catch {
      // Gone meanwhile, or another user's.
    }
  }
}

/** A client of a guest at an address, for one test. */
export function clientOf(address: GuestAddress, clock = systemClock): LinkedGuest {
  const guest = guestDialler(clock).guest(address);
  onTestFinished(() => guest.close());
  return guest;
}

export function idOf(text: string): ExecutionId {
  if (!isExecutionId(text)) throw new Error(`no execution id: ${text}`);
  return text;
}

/** A shell script as a wish. */
export function scriptOf(id: string, text: string, more: Partial<ExecutionWish> = {}): ExecutionWish {
  return {
    executionId: idOf(id),
    command: "sh",
    args: ["-c", text],
    cwd: undefined,
    env: {},
    stdin: undefined,
    timeoutMs: undefined,
    maxOutputBytes: undefined,
    retainOutput: false,
    onDisconnect: "detach",
    drainMs: undefined,
    leftovers: "keep",
    ...more,
  };
}

/** What one run delivered, checked to be one unbroken sequence. */
export interface Delivered {
  readonly events: readonly ExecutionEvent[];
  readonly bytes: Buffer;
  readonly gapBytes: number;
  readonly exit: Extract<ExecutionEvent, { t: "exited" }>["exit"];
}

/** Reads a run to its end. `each` may take its time. */
export async function delivered(
  run: AsyncIterable<ExecutionEvent>,
  each: (event: ExecutionEvent) => unknown = () => undefined,
): Promise<Delivered> {
  const events: ExecutionEvent[] = [];
  const chunks: Uint8Array[] = [];
  let position = 0;
  let gapBytes = 0;
  for await (const event of run) {
    events.push(event);
    if (event.t === "output") {
      if (event.offset !== position) throw new Error(`output at ${event.offset}, expected ${position}`);
      position += event.data.length;
      chunks.push(event.data);
    } else if (event.t === "gap") {
      if (event.from !== position) throw new Error(`gap at ${event.from}, expected ${position}`);
      position = event.to;
      gapBytes += event.to - event.from;
    }
    await each(event);
  }
  const last = events.at(-1);
  if (last?.t !== "exited") throw new Error("it ended without exited");
  if (position !== last.exit.outputBytes)
    throw new Error(`${position} of ${last.exit.outputBytes} bytes accounted for`);
  return { events, bytes: Buffer.concat(chunks), gapBytes, exit: last.exit };
}
