import { HoldfastError, hasReason } from "@holdfast/errors";
import {
  collect,
  executionWish,
  type Fault,
  openWish,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  type Verb,
  workspaceId,
} from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WorkspaceRegistry } from "./registry.ts";

const id = workspaceId("demo");
const stops = ["suspend", "destroy", "remove"] as const;
const harmless = ["open", "resume", "execute", "read"] as const;
type CallName = (typeof stops)[number] | (typeof harmless)[number];
type Foreign = "deliverLate" | "replacePod" | "losePod" | "Suspended" | "Running" | "foreignDelete";

/** Calls are not awaited: they overlap, and some lose their caller at once or some time later. */
type Step =
  | { readonly t: "call"; readonly call: CallName; readonly leavesAfterMs: number | undefined }
  | { readonly t: "close" }
  | { readonly t: "foreign"; readonly what: Foreign }
  | { readonly t: "fault"; readonly verb: Verb; readonly fault: Fault }
  | { readonly t: "habit"; readonly habit: "podsStart" | "podsEnd"; readonly on: boolean }
  | { readonly t: "pass"; readonly ms: number };

const stepOf = (calls: readonly CallName[], foreign: readonly Foreign[]): fc.Arbitrary<Step> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        t: fc.constant("call" as const),
        call: fc.constantFrom(...calls),
        leavesAfterMs: fc.constantFrom(undefined, undefined, 0, 30, 5_000),
      }),
    },
    { weight: 1, arbitrary: fc.record({ t: fc.constant("close" as const) }) },
    { weight: 3, arbitrary: fc.record({ t: fc.constant("foreign" as const), what: fc.constantFrom(...foreign) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        t: fc.constant("fault" as const),
        verb: fc.constantFrom<Verb>(
          "createSandbox",
          "setMode",
          "deleteSandbox",
          "readSandbox",
          "readPods",
          "readRemains",
        ),
        fault: fc.constantFrom<Fault>(
          "refuse",
          "never-arrived",
          "reply-lost",
          "late",
          "unavailable",
          "forbidden",
          "stall",
        ),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        t: fc.constant("habit" as const),
        habit: fc.constantFrom("podsStart", "podsEnd"),
        on: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ t: fc.constant("pass" as const), ms: fc.constantFrom(0, 50, 1_000, 11_000, 130_000) }),
    },
  );

class Play {
  readonly on: Stage = stage();
  readonly registry = new WorkspaceRegistry(this.on.deps);
  readonly defects: unknown[] = [];
  /** Execute calls that were made, and how often the guest began to run one. */
  executes = 0;
  began = 0;
  opened = false;
  /** Opens that were told that somebody suspended the workspace under them. */
  overtakenOpens = 0;

  constructor() {
    this.on.guests.shape = (script) => {
      const { execute } = script;
      script.execute = (wish, signal) => {
        this.began += 1;
        return execute(wish, signal);
      };
    };
  }

  async step(step: Step): Promise<void> {
    const { cluster, clock } = this.on;
    if (step.t === "call") this.#begin(step.call, step.leavesAfterMs);
    else if (step.t === "close") this.registry.close(id);
    else if (step.t === "fault") cluster.plan.fail(step.verb, step.fault);
    else if (step.t === "habit") cluster.habits[step.habit] = step.on;
    else if (step.t === "pass") await clock.advance(step.ms);
    else this.#meddle(step.what);
    await settleTasks();
  }

  #begin(name: CallName, leavesAfterMs: number | undefined): void {
    const caller = new AbortController();
    const left = new Error("the caller left");
    if (leavesAfterMs !== undefined) this.on.clock.schedule(leavesAfterMs, () => caller.abort(left));
    const { signal } = caller;
    const stop = { ...suspendWish, stopTimeoutMs: 20_000 };
    const call = {
      open: async () => {
        await this.registry.open(id, { ...openWish, readyTimeoutMs: 20_000 }, signal);
        this.opened = true;
      },
      resume: () => this.registry.resume(id, { readyTimeoutMs: 20_000 }, signal),
      suspend: () => this.registry.suspend(id, stop, signal),
      destroy: () => this.registry.destroy(id, { ...stop, deleteDisk: false }, signal),
      remove: () => this.registry.destroy(id, { ...stop, deleteDisk: true }, signal),
      read: () => this.registry.read(id, true, signal),
      execute: () => {
        this.executes += 1;
        return collect(this.registry.execute(id, executionWish(), signal));
      },
    }[name];
    Promise.resolve(call()).catch((error: unknown) => {
      if (hasReason(error, "WORKSPACE_SUSPENDED") && name === "open") this.overtakenOpens += 1;
      if (error !== left && !(error instanceof HoldfastError)) this.defects.push(error);
    });
  }

  #meddle(what: Foreign): void {
    const { cluster } = this.on;
    if (what === "deliverLate") cluster.deliverLate();
    if (!cluster.stands(id)) return;
    if (what === "foreignDelete") cluster.foreignDelete(id);
    else if (what === "Running" || what === "Suspended") cluster.foreignMode(id, what);
    else if (what === "replacePod" && cluster.stored(id).mode === "Running") cluster.replacePod(id);
    else if (what === "losePod") cluster.stored(id).pods = [];
  }

  /** Whatever happened: no defect, no command run twice, nothing left running, and the name can be opened. */
  async end(): Promise<void> {
    const { cluster, clock } = this.on;
    cluster.plan.forget();
    Object.assign(cluster.habits, { controller: true, podsStart: true, podsEnd: true });
    await clock.advance(600_000);
    expect(this.defects).toEqual([]);
    expect(this.began).toBeLessThanOrEqual(this.executes);
    expect([clock.pending, cluster.subscriptions]).toEqual([0, 0]);
    expect(this.registry.size).toBeLessThanOrEqual(1);
    if (cluster.stands(id)) {
      cluster.collect("namzu-ws-demo");
      if (cluster.stands(id)) cluster.stored(id).pods = [];
      if (cluster.stands(id)) cluster.observe(id);
    }
    const reopened = this.registry.open(id, openWish, new AbortController().signal).catch((error: unknown) => error);
    const first = await clock.runUntilSettled(reopened);
    // What was deleted by somebody is said once, before it is created anew.
    const view = first instanceof Error ? await this.registry.open(id, openWish, new AbortController().signal) : first;
    expect(view).toMatchObject({ state: "running" });
  }
}

describe("whatever is asked, by callers that come and go", () => {
  it("L4 L39 ends without a defect, with no command run twice, and can be opened again", async () => {
    const foreign = ["deliverLate", "replacePod", "losePod", "Suspended", "Running", "foreignDelete"] as const;
    const steps = fc.array(stepOf([...stops, ...harmless], foreign), { minLength: 1, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const play = new Play();
        for (const step of all) await play.step(step);
        await play.end();
      }),
      { numRuns: 2_500 },
    );
  }, 60_000);

  it("L19 suspends nothing once an Open has succeeded and nobody asked, and deletes nothing ever", async () => {
    const steps = fc.array(stepOf(harmless, ["deliverLate", "replacePod", "losePod"]), { minLength: 1, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const play = new Play();
        for (const step of all) {
          await play.step(step);
          if (play.opened) expect(play.on.cluster.stored(id).mode).toBe("Running");
        }
        await play.end();
        if (play.opened) expect(play.on.cluster.stored(id).mode).toBe("Running");
        expect(play.overtakenOpens).toBe(0);
        expect(play.on.cluster.plan.count("deleteSandbox")).toBe(0);
      }),
      { numRuns: 2_500 },
    );
  }, 60_000);
});
