import { sandboxNameOf } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  collect,
  executionWish,
  type Fault,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  type Verb,
  workspaceId,
} from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GuestLost, GuestNotReached } from "./ports/guest.ts";
import { readThrough } from "./read-through.ts";
import { Workspace } from "./workspace.ts";

const id = workspaceId("demo");

const verbs = ["open", "resume", "suspend", "destroy", "adopt", "execute", "quiesce", "refresh", "flush"] as const;
type PropertyVerb = (typeof verbs)[number] | "remove";

type AgentFault = "refuses" | "is lost" | "is not reached" | "recovers";

/** What may happen next. Verbs are not awaited: they overlap, and end when time passes. */
type Step =
  | { readonly t: PropertyVerb }
  | {
      readonly t: "foreign";
      readonly what: "Running" | "Suspended" | "replacePod" | "losePod" | "failPod" | "deliverLate" | "endPods";
    }
  | { readonly t: "agent"; readonly verb: "quiesce" | "flush" | "cancel"; readonly fails: AgentFault }
  | { readonly t: "fault"; readonly verb: Verb; readonly fault: Fault }
  | { readonly t: "habit"; readonly habit: "controller" | "podsStart" | "podsEnd"; readonly on: boolean }
  | { readonly t: "pass"; readonly ms: number };

const stepOf = (allowed: readonly PropertyVerb[]): fc.Arbitrary<Step> =>
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ t: fc.constantFrom(...allowed) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        t: fc.constant("foreign" as const),
        what: fc.constantFrom("Running", "Suspended", "replacePod", "losePod", "failPod", "deliverLate", "endPods"),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        t: fc.constant("fault" as const),
        verb: fc.constantFrom<Verb>(
          "createSandbox",
          "setMode",
          "deleteSandbox",
          "deletePod",
          "readSandbox",
          "readPods",
          "readClaims",
        ),
        fault: fc.constantFrom<Fault>("refuse", "never-arrived", "reply-lost", "late", "unavailable", "stall"),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        t: fc.constant("agent" as const),
        verb: fc.constantFrom("quiesce", "flush", "cancel"),
        fails: fc.constantFrom<AgentFault>("refuses", "is lost", "is not reached", "recovers"),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        t: fc.constant("habit" as const),
        habit: fc.constantFrom("controller", "podsStart", "podsEnd"),
        on: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ t: fc.constant("pass" as const), ms: fc.constantFrom(0, 50, 1_000, 11_000, 130_000) }),
    },
  );

const quietWish = { ...suspendWish, quiesce: { graceMs: 10 } };

/** A process with its handle: a `gone` one is dropped, as the registry does. */
class Process {
  workspace: Workspace;
  readonly #on: Stage;

  constructor(on: Stage) {
    this.#on = on;
    this.workspace = new Workspace(id, on.deps);
  }

  begin(verb: PropertyVerb): void {
    if (this.workspace.state.t === "gone") this.workspace = new Workspace(id, this.#on.deps);
    const workspace = this.workspace;
    const call = {
      open: () => workspace.open({ ...openWish, readyTimeoutMs: 20_000 }, patient),
      resume: () => workspace.resume({ readyTimeoutMs: 20_000 }, patient),
      suspend: () => workspace.suspend({ ...suspendWish, stopTimeoutMs: 20_000 }, patient),
      destroy: () => workspace.destroy({ ...suspendWish, stopTimeoutMs: 20_000, deleteDisk: false }, patient),
      remove: () => workspace.destroy({ ...suspendWish, stopTimeoutMs: 20_000, deleteDisk: true }, patient),
      adopt: () => workspace.adopt(patient),
      execute: () => collect(workspace.execute(executionWish(), patient)),
      quiesce: () => workspace.suspend({ ...quietWish, stopTimeoutMs: 20_000 }, patient),
      refresh: () =>
        workspace.resume({ readyTimeoutMs: 20_000, refreshPodTemplate: true, acceptReplacedDisk: true }, patient),
      flush: () => workspace.diskUnder(undefined).flush(1_000, patient),
    }[verb];
    call().catch((error: unknown) => {
      // An error that names no reason is a defect: a transition that the table lacks, a bug in a recipe.
      if (!(error instanceof Error) || error.name !== "HoldfastError") this.defects.push(error);
    });
  }

  readonly defects: unknown[] = [];
}

describe("whatever is asked and whatever goes wrong", () => {
  it("L4 no DELETE is sent without delete_disk, and suspended is never claimed with a live pod", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(stepOf(verbs), { minLength: 1, maxLength: 25 }), async (steps) => {
        const on = await playAll(steps);
        expect(on.cluster.plan.count("deleteSandbox")).toBe(0);
      }),
      { numRuns: 500 },
    );
  }, 60_000);

  it("deletes among them end, and leave a name that can be opened anew", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(stepOf([...verbs, "remove"]), { minLength: 1, maxLength: 25 }), async (steps) => {
        await playAll(steps);
      }),
      { numRuns: 500 },
    );
  }, 60_000);
});

async function playAll(steps: readonly Step[]): Promise<Stage> {
  const on = stage();
  const deletesOfLive = watchDeletes(on);
  announceAll(on);
  const here = new Process(on);
  const there = new Process(on);
  for (const [at, next] of steps.entries()) {
    await play(on, at % 3 === 2 ? there : here, next);
    for (const { workspace } of [here, there]) assertHonest(on, workspace);
  }
  on.cluster.plan.forget();
  Object.assign(on.cluster.habits, { controller: true, podsStart: true, podsEnd: true });
  startPods(on);
  await on.clock.advance(600_000);
  for (const { workspace } of [here, there]) assertHonest(on, workspace);
  expect([...here.defects, ...there.defects]).toEqual([]);
  expect(deletesOfLive).toEqual([]);
  // Nothing runs on: no timer, no subscription, whatever happened.
  expect([on.clock.pending, on.cluster.subscriptions]).toEqual([0, 0]);
  startPods(on);
  await assertUsableAgain(on);
  return on;
}

/** L42: what was deleted though it had not ended. */
function watchDeletes(on: Stage): string[] {
  const live: string[] = [];
  const { deletePod } = on.cluster;
  on.cluster.deletePod = async (wish, within) => {
    const phase = on.cluster.podOf(wish.uid)?.phase;
    if (phase === "Running" || phase === "Pending") live.push(wish.uid);
    return await deletePod.call(on.cluster, wish, within);
  };
  return live;
}

function announceAll(on: Stage): void {
  on.guests.shape = (script) => {
    const { health } = script;
    const features = ["executions", "files", "holder-epoch", "probe", "quiesce", "flush", "sessions"];
    script.health = async (within) => ({ ...(await health(within)), features });
  };
}

/** The agents of the pods that stand answer like this from now on. */
function spoil(on: Stage, verb: "quiesce" | "flush" | "cancel", fails: AgentFault): void {
  const failure = {
    refuses: new HoldfastError(verb === "flush" ? "FLUSH_UNCONFIRMED" : "QUIESCE_UNCONFIRMED", { message: "no" }),
    "is lost": new GuestLost("the link broke"),
    "is not reached": new GuestNotReached("no-connection", "refused"),
  };
  const well = {
    quiesce: quietened,
    flush: async () => ({ tookMs: 1 }),
    cancel: async () => ({ alreadyEnded: false }),
  };
  for (const { uid } of on.cluster.pods(id)) {
    const answer = fails === "recovers" ? well[verb] : () => Promise.reject(failure[fails]);
    Object.assign(on.guests.agent(uid), { [verb]: answer });
  }
}

const quietened = async () =>
  ({ scope: "pid_namespace", rounds: 1, stopped: [], stoppedCount: 0, notReached: [], holdId: "hold-1" }) as const;

async function play(on: Stage, process: Process, next: Step): Promise<void> {
  if (next.t === "agent") spoil(on, next.verb, next.fails);
  else if (next.t === "fault") on.cluster.plan.fail(next.verb, next.fault);
  else if (next.t === "habit") on.cluster.habits[next.habit] = next.on;
  else if (next.t === "pass") await on.clock.advance(next.ms);
  else if (next.t === "foreign") meddle(on, next.what);
  else process.begin(next.t);
  await settleTasks();
}

function meddle(on: Stage, what: Extract<Step, { readonly t: "foreign" }>["what"]): void {
  if (what === "deliverLate") on.cluster.deliverLate();
  if (!on.cluster.stands(id)) return;
  if (what === "Running" || what === "Suspended") on.cluster.foreignMode(id, what);
  else if (what === "replacePod" && on.cluster.stored(id).mode === "Running") on.cluster.replacePod(id);
  else if (what === "failPod") {
    for (const pod of on.cluster.stored(id).pods) Object.assign(pod, { phase: "Failed", ready: false });
    on.cluster.wake(id);
  } else if (what === "losePod") on.cluster.stored(id).pods = [];
  else if (what === "endPods") on.cluster.endPods(id);
}

/** The cluster is well again: pods that never started are made anew, and the controller has looked. */
function startPods(on: Stage): void {
  if (!on.cluster.stands(id)) return;
  on.cluster.collect(sandboxNameOf(id));
  if (!on.cluster.stands(id)) return;
  on.cluster.stored(id).pods = [];
  on.cluster.observe(id);
}

/** At the moment that `suspended` was committed no pod lived. Later others may wake it: then its stamp has moved. */
function assertHonest(on: Stage, workspace: Workspace): void {
  if (workspace.state.t !== "suspended" || !on.cluster.stands(id)) return;
  const stored = on.cluster.stored(id);
  const untouched = stored.mode === "Suspended";
  if (untouched) expect(stored.pods.filter((pod) => pod.phase === "Running" && !pod.deleting)).toEqual([]);
}

/** Whatever was left behind, an Open by a new process brings it to a guest, or says why not. */
async function assertUsableAgain(on: Stage): Promise<void> {
  const next = new Workspace(id, on.deps);
  const view = await on.clock.runUntilSettled(next.open(openWish, patient));
  expect(view.state).toBe("running");
  expect((await readThrough(on.deps, id, patient)).state).toBe("running");
}
