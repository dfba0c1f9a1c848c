import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { ContainerRunner, type ContainerTask } from "./container-runner.ts";
import type { ContainerView } from "./container-view.ts";
import { planPod } from "./pod-plan.ts";
import { kubeletBackoff } from "./restart-backoff.ts";
import { Slots } from "./slots.ts";
import { agentPod, quiet } from "./testing/cluster.ts";
import { UnprovenEndError } from "./unproven-end-error.ts";

it("a container of which nobody can tell whether all has ended is not run again", async () => {
  const pod = agentPod("blind");
  const [plan] = planPod(pod).containers;
  if (plan === undefined) throw new Error("no container");
  let view: ContainerView = {
    state: { waiting: { reason: "ContainerCreating" } },
    lastTermination: undefined,
    containerId: undefined,
    restartCount: 0,
    started: false,
    ready: false,
  };
  let starts = 0;
  const set = (change: Partial<ContainerView>) => {
    view = { ...view, ...change };
  };
  const task = {
    pod,
    plan,
    launch: {
      launchPlan: async (output) => {
        starts += 1;
        const endSurvivors = async () => Promise.reject(new Error("EMFILE"));
        return { file: "/bin/true", args: [], env: {}, endSurvivors, output, beforeStart: async () => undefined };
      },
      afterEnd: async () => ({ ranOutOfMemory: false }),
      inside: () => ({ file: "/bin/true", args: [], env: {} }),
    },
    isInit: false,
    policy: "Always",
    graceMs: 1_000,
    ip: "127.0.0.1",
    output: new PassThrough().resume(),
    images: { errorOf: () => undefined },
    execProbes: new Slots(1),
    starts: new Slots(1),
    backoff: kubeletBackoff,
    record: () => undefined,
    log: quiet,
    view: () => view,
    set,
    note: set,
  } satisfies ContainerTask;
  await expect(new ContainerRunner(task).run()).rejects.toThrow(UnprovenEndError);
  expect(starts).toBe(1);
  expect(view.state).not.toHaveProperty("terminated"); // what is not known is not claimed
});
