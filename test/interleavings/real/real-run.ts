import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedCluster, guestAgentImage, startEmbeddedCluster } from "@holdfast/embedded-cluster";
import fc from "fast-check";
import { pino } from "pino";
import { bundleGuestAgent } from "../../../services/guest-agent/bundle.ts";
import { Callers } from "../callers.ts";
import { carryOutForeign } from "../foreign.ts";
import { judge } from "../judge/judge.ts";
import type { Violation } from "../judge/violation.ts";
import type { CallStep, ForeignDeed } from "../steps.ts";
import type { Tally } from "../tally.ts";
import type { CallRecord, Verb } from "../world/calls.ts";
import { isUp } from "../world/facts.ts";
import { RealWorld } from "./real-world.ts";

type RealStep =
  | CallStep
  | { readonly t: "foreign"; readonly deed: ForeignDeed }
  | {
      readonly t: "fault";
      readonly verb: "create" | "patch" | "delete" | "get";
      readonly how: "lost" | "late" | "slow";
    }
  | { readonly t: "restart"; readonly replica: number }
  | { readonly t: "pause"; readonly ms: number };

const verbs: readonly Verb[] = [
  "open",
  "open",
  "take_over",
  "resume",
  "suspend",
  "execute",
  "execute",
  "program",
  "read",
  "destroy",
  "object_suspend",
  "delete",
];
const deeds: readonly ForeignDeed[] = ["suspend", "wake", "fence", "kill_pod", "drain_pod", "kill_container", "delete"];

const step = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      t: fc.constant("call" as const),
      caller: fc.nat(3),
      replica: fc.nat(1),
      verb: fc.constantFrom(...verbs),
      ignoresFence: fc.constant(false),
      leavesOnFailure: fc.boolean(),
      goesAfterMs: fc.constantFrom(undefined, undefined, undefined, 50),
    }),
  },
  { weight: 3, arbitrary: fc.record({ t: fc.constant("foreign" as const), deed: fc.constantFrom(...deeds) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      t: fc.constant("fault" as const),
      verb: fc.constantFrom("create", "patch", "delete", "get"),
      how: fc.constantFrom("lost", "late", "slow"),
    }),
  },
  { weight: 1, arbitrary: fc.record({ t: fc.constant("restart" as const), replica: fc.nat(1) }) },
  { weight: 6, arbitrary: fc.record({ t: fc.constant("pause" as const), ms: fc.constantFrom(0, 50, 300, 1_500) }) },
) as fc.Arbitrary<RealStep>;

const actions = {
  lost: { t: "applyThenDrop", loss: "cut" },
  late: { t: "applyLate", ms: 2_000, loss: "timeout" },
  slow: { t: "delay", ms: 500 },
} as const;

export interface RealFailure {
  readonly number: number;
  readonly steps: readonly RealStep[];
  readonly violations: readonly Violation[];
}

/** Sequences on a cluster whose pods run real agents, a few at a time. */
export async function runReal(
  runs: number,
  seed: number,
  tally: Tally,
  verbose: boolean,
): Promise<readonly RealFailure[]> {
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-interleavings-"));
  const { directory } = await bundleGuestAgent();
  const agent = { image: guestAgentImage, nodePath: process.execPath, directory, entry: "main.mjs" };
  const cluster = await startEmbeddedCluster({ dataDir, agent, log: pino({ level: "silent" }) });
  const sequences = fc.sample(fc.array(step, { minLength: 12, maxLength: 20 }), { seed, numRuns: runs });
  const failures: RealFailure[] = [];
  try {
    const waiting = [...sequences.entries()];
    const workers = Array.from({ length: Math.min(4, runs) }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const [number, steps] = next;
        const violations = await playReal(cluster, `real-${number}`, steps, tally, verbose);
        if (violations.length > 0) failures.push({ number, steps, violations });
      }
    });
    await Promise.all(workers);
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
  }
  return failures;
}

async function playReal(
  cluster: EmbeddedCluster,
  name: string,
  steps: readonly RealStep[],
  tally: Tally,
  verbose: boolean,
): Promise<readonly Violation[]> {
  const world = await RealWorld.start(cluster, name, (text) => verbose && console.log(`${name} ${Date.now()} ${text}`));
  try {
    const callers = new Callers(world, true, tally);
    const make = (verb: Verb): CallRecord =>
      callers.call({
        t: "call",
        caller: 0,
        replica: 0,
        verb,
        ignoresFence: false,
        leavesOnFailure: false,
        goesAfterMs: undefined,
      });
    await answered(make("take_over"));
    for (const one of steps) await take(world, callers, one, tally);
    for (const call of world.calls) if (!call.isAbandoned) await answered(call);
    await world.settled();
    const violations = [...judge(world)];
    const told: string[] = [];
    for (let tries = 0; tries < 6; tries += 1) {
      const call = make("take_over");
      await answered(call);
      await world.settled();
      if (call.answer?.t === "ok") {
        const wasUp = world.history.between(call.fromRevision, call.toRevision ?? 0).some(isUp);
        return [
          ...violations,
          ...(wasUp ? [] : [{ promise: "an Open leads on", what: "no pod was up" }]),
          ...judge(world),
        ];
      }
      told.push(call.answer?.reason ?? "unanswered");
    }
    return [...violations, { promise: "no handle ends where no verb leads on", what: told.join(" | ") }];
  } finally {
    await world.stop();
  }
}

async function take(world: RealWorld, callers: Callers, one: RealStep, tally: Tally): Promise<void> {
  world.tell(`STEP ${JSON.stringify(one)}`);
  switch (one.t) {
    case "call":
      callers.call(one);
      return;
    case "foreign":
      tally.count("foreign", one.deed);
      return await carryOutForeign(world, one.deed);
    case "fault": {
      tally.count("fault", `${one.verb} ${one.how}`);
      const match = { by: "client", verb: one.verb, resource: "sandboxes", name: world.sandboxName };
      world.faults.add({ match, action: actions[one.how], count: 1 });
      return;
    }
    case "restart":
      tally.count("foreign", "restart of a replica");
      return world.restart(one.replica);
    case "pause":
      return await new Promise((resolve) => setTimeout(resolve, one.ms));
  }
}

const patienceMs = 90_000;

/** Waits for it; one that nobody answers at all is told by the judge of the sequence. */
async function answered(call: CallRecord): Promise<void> {
  const until = Date.now() + patienceMs;
  while (call.answer === undefined && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
  if (call.answer === undefined) throw new Error(`call ${call.id} (${call.verb}) was not answered in ${patienceMs} ms`);
}
