import type { KubeObject } from "@holdfast/embedded-cluster/testing";
import { runSequence, type Tell } from "./sequence.ts";
import type { Sequence } from "./steps.ts";
import { Tally } from "./tally.ts";
import {
  addressOf,
  containerRestartsOf,
  hasEnded,
  isDying,
  isReady,
  modeOf,
  phaseOf,
  storedEpochOf,
  writtenByOf,
} from "./world/facts.ts";
import type { Moment } from "./world/history.ts";
import type { World } from "./world/world.ts";

interface Line {
  readonly revision: number;
  readonly text: string;
}

/** Plays one sequence and tells all that happened, in its order: steps, calls and answers, requests, and what became of the objects. */
export async function tracedSequence(sequence: Sequence): Promise<readonly string[]> {
  const lines: Line[] = [];
  let world: World | undefined;
  const tell: Tell = (of, text) => {
    world = of;
    const ms = String(of.clock.monotonicMs()).padStart(7);
    lines.push({ revision: of.cluster.revision, text: `${ms} ${text}` });
  };
  const violations = await runSequence(sequence, new Tally(), tell);
  const moments = world?.history.all() ?? [];
  const told = [...moments.map(momentLine), ...lines];
  const inOrder = told
    .map((line, at) => ({ line, at }))
    .sort((a, b) => a.line.revision - b.line.revision || a.at - b.at);
  return [
    ...inOrder.map(({ line }) => line.text),
    ...violations.map(({ promise, what }) => `VIOLATION ${promise}: ${what}`),
  ];
}

function momentLine({ revision, sandbox, pods }: Moment): Line {
  const object = sandbox
    ? `${sandbox.metadata.uid?.slice(0, 4)} gen ${sandbox.metadata.generation} ${modeOf(sandbox)} epoch ${storedEpochOf(sandbox)} by ${writtenByOf(sandbox)}${isDying(sandbox) ? " dying" : ""}`
    : "nothing";
  return { revision, text: `        rev ${revision}: ${object} | ${pods.map(podWords).join(", ")}` };
}

function podWords(pod: KubeObject): string {
  const marks = [isReady(pod) && "ready", isDying(pod) && "dying", hasEnded(pod) && "ended"].filter(Boolean);
  return `pod ${pod.metadata.uid?.slice(0, 4)} ${phaseOf(pod)} ${addressOf(pod) ?? "-"} r${containerRestartsOf(pod)} ${marks.join(" ")}`;
}
