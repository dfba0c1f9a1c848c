import { spawn } from "node:child_process";
import { get, type IncomingMessage } from "node:http";
import { get as getSecurely } from "node:https";
import { connect } from "node:net";
import type { Readable } from "node:stream";
import { callAfter } from "./long-timer.ts";
import type { HttpAction, ProbePlan } from "./probe-plan.ts";
import type { ProbeResult } from "./prober.ts";

/** How to run a command inside the pod, as the pod's user. */
export interface InsidePod {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const messageBytes = 512;

/** Makes one attempt, ended by the plan's timeout or the signal. Never rejects. */
export async function attemptProbe(
  plan: ProbePlan,
  ip: string,
  inside: (command: readonly string[]) => InsidePod | undefined,
  signal: AbortSignal,
): Promise<ProbeResult> {
  // By hand, not AbortSignal.any: the pod's signal lives for months and would collect what each attempt derives from it.
  const within = new AbortController();
  const end = () => within.abort();
  const stop = callAfter(plan.timeoutMs, end);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    const result = await make(plan, ip, inside, within.signal);
    const timedOut = !result.ok && within.signal.aborted;
    return timedOut ? { ok: false, message: `no answer within ${plan.timeoutMs / 1000}s` } : result;
  } finally {
    stop();
    signal.removeEventListener("abort", end);
  }
}

async function make(
  plan: ProbePlan,
  ip: string,
  inside: (command: readonly string[]) => InsidePod | undefined,
  signal: AbortSignal,
): Promise<ProbeResult> {
  switch (plan.action.t) {
    case "exec": {
      const call = inside(plan.action.command);
      return call === undefined ? { ok: false, message: "the container is not running" } : runCommand(call, signal);
    }
    case "tcp":
      return openConnection(ip, plan.action.port, signal);
    case "http":
      return askHttp(ip, plan.action, signal);
  }
}

/** Runs a command; what it exits with is the result. */
export function runCommand(call: InsidePod, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise((resolve) => {
    let said = "";
    const child = spawn(call.file, call.args, {
      env: call.env,
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      signal,
      killSignal: "SIGKILL", // what it runs inside dies with it (parent-death signal)
    });
    // Without file descriptors Node gives a child no streams; its "error" follows.
    const streams: readonly (Readable | undefined)[] = [child.stdout, child.stderr];
    for (const stream of streams)
      stream?.on("data", (chunk: Buffer) => {
        if (said.length < messageBytes) said += chunk.toString("utf8").slice(0, messageBytes - said.length);
      });
    child.once("error", (error) => resolve({ ok: false, message: error.message }));
    child.once("exit", (code) => {
      for (const stream of streams) stream?.destroy();
      resolve({ ok: code === 0, message: said.trim() || `exit code ${code}` });
    });
  });
}

function openConnection(host: string, port: number, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    const end = (result: ProbeResult) => {
      socket.destroy();
      resolve(result);
    };
    socket.once("connect", () => end({ ok: true, message: "" }));
    socket.once("error", (error) => end({ ok: false, message: error.message }));
  });
}

function askHttp(host: string, action: HttpAction, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const failed = (error: Error) => resolve({ ok: false, message: error.message });
    try {
      const headers = Object.fromEntries(action.headers);
      const target = { host, port: action.port, path: action.path, headers, signal, agent: false } as const;
      const answered = (response: IncomingMessage) => {
        response.on("error", () => undefined); // destroyed below: only the status was asked for
        response.destroy();
        const code = response.statusCode ?? 0;
        resolve({ ok: code >= 200 && code < 400, message: `HTTP probe failed with statuscode: ${code}` });
      };
      const request =
        action.scheme === "https"
          ? getSecurely({ ...target, rejectUnauthorized: false }, answered)
          : get(target, answered);
      request.on("error", failed);
    } catch (error) {
      failed(error instanceof Error ? error : new Error(String(error))); // a header that HTTP does not allow
    }
  });
}
