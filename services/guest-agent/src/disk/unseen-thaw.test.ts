import { spawn } from "node:child_process";
import { expect, it, onTestFinished, vi } from "vitest";
import { readProcess } from "../execution/processes.ts";
import { eventually, pidOf } from "../testing/agent-process.testing.ts";
import { stopPrograms } from "./stop-programs.ts";

const kernel = vi.hoisted(() => ({ hasDescriptors: true }));

vi.mock("node:fs", async (importOriginal) => {
  const real = await importOriginal<typeof import("node:fs")>();
  const readFileSync = (...args: Parameters<typeof real.readFileSync>) => {
    if (!kernel.hasDescriptors) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    return real.readFileSync(...args);
  };
  return { ...real, readFileSync };
});

it("G23 what was frozen goes on also where the guest has no descriptors left to look at it by", async () => {
  const children = [1, 2].map(() => spawn("sleep", ["100"], { detached: true, stdio: "ignore" }));
  onTestFinished(() => {
    for (const child of children) child.kill("SIGKILL");
  });
  const pids = children.map(pidOf);
  const seen = pids.flatMap((pid) => readProcess(pid) ?? []);
  let scans = 0;
  const members = () => {
    scans += 1;
    if (scans === 2) kernel.hasDescriptors = false; // Both are frozen by now.
    return seen;
  };
  const stopping = stopPrograms({ kind: "owned-sessions", members }, 100, new AbortController().signal);
  await expect(stopping).rejects.toMatchObject({ code: "EMFILE" });
  kernel.hasDescriptors = true;
  await eventually(() => pids.every((pid) => readProcess(pid)?.state === "S"));
});
