import { expect, it } from "vitest";
import type { ContainerView } from "./container-view.ts";
import { phaseOf } from "./pod-phase.ts";

const bare = { containerId: undefined, restartCount: 0, started: false, ready: false, lastTermination: undefined };
const fresh: ContainerView = { ...bare, state: { waiting: { reason: "ContainerCreating" } } };
const running: ContainerView = { ...bare, state: { running: { startedAt: "2026-01-02T03:04:05Z" } } };
const ended = (exitCode: number): ContainerView => ({ ...bare, state: { terminated: { exitCode, reason: "" } } });
const backingOff: ContainerView = { ...fresh, lastTermination: { exitCode: 1, reason: "Error" } };

it.each([
  ["Always", [], [fresh], "Pending"],
  ["Always", [], [fresh, running], "Pending"],
  ["Always", [], [running, running], "Running"],
  ["Always", [], [running, backingOff], "Running"],
  ["Always", [], [ended(0)], "Running"],
  ["Always", [], [backingOff], "Running"],
  ["OnFailure", [], [ended(0), ended(0)], "Succeeded"],
  ["OnFailure", [], [ended(0), ended(1)], "Running"],
  ["OnFailure", [], [ended(0), running], "Running"],
  ["Never", [], [ended(0), ended(0)], "Succeeded"],
  ["Never", [], [ended(0), ended(1)], "Failed"],
  ["Never", [], [ended(1), running], "Running"],
  ["Always", [fresh], [fresh], "Pending"],
  ["Always", [running], [fresh], "Pending"],
  ["Always", [ended(1)], [fresh], "Pending"],
  ["Never", [ended(1)], [fresh], "Failed"],
  ["Always", [ended(0)], [running], "Running"],
] as const)("restartPolicy %s, containers %j then %j: %s", (policy, inits, others, phase) => {
  expect(phaseOf(policy, inits, others)).toBe(phase);
});
