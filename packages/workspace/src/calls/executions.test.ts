import { bootIdOf, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  collect,
  executionId,
  executionWish,
  FakeExecutions,
  openWish,
  patient,
  stage,
  workspaceId,
} from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { type ExecutionEvent, type Guest, GuestLost } from "../ports/guest.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const x = executionId("x");
const cut = new GuestLost("cut");
const attached = { t: "started", executionId: x, bootId: bootIdOf("b"), attached: true } as const;
const output = { t: "output", stream: "stdout", offset: 10, data: new Uint8Array(5) } as const;
const wish = { executionId: x, fromOffset: 10, maxOutputBytes: undefined, expectedBootId: undefined };

/** A workspace whose guest's commands are these. */
async function workspaceWith(
  shape: (executions: FakeExecutions) => void,
  more: Partial<Guest> = {},
): Promise<Workspace> {
  const on = stage();
  const executions = new FakeExecutions();
  shape(executions);
  const shaped = (guest: Guest): Guest => {
    const under = guest.under.bind(guest);
    return Object.assign(guest, { executions, ...more, under: (epoch?: HolderEpoch) => shaped(under(epoch)) });
  };
  const guests: typeof on.deps.guests = { guest: (address) => shaped(on.guests.guest(address)) };
  const workspace = new Workspace(id, { ...on.deps, guests });
  await workspace.open(openWish, patient);
  return workspace;
}

async function* failing(error: unknown, ...before: readonly ExecutionEvent[]): AsyncGenerator<ExecutionEvent> {
  yield* before;
  throw error;
}

describe("a lost link", () => {
  it("leaves an attach EXECUTION_DETACHED at its offset, as UNAVAILABLE: it may be made again", async () => {
    const detached = new HoldfastError("EXECUTION_DETACHED", { message: "gone", metadata: { next_offset: "15" } });
    for (const error of [cut, detached]) {
      const workspace = await workspaceWith((executions) => {
        executions.attach = () => failing(error, attached, output);
      });
      const attach = collect(workspace.executionsUnder(undefined, "AttachExecution").attach(wish, patient));
      await expect(attach).rejects.toMatchObject({
        reason: "EXECUTION_DETACHED",
        status: "UNAVAILABLE",
        metadata: { next_offset: "15", operation: "AttachExecution", workspace_id: id },
      });
    }
  });

  it("leaves a start EXECUTION_DETACHED, as UNKNOWN: what became of it is not known", async () => {
    const workspace = await workspaceWith(() => undefined, {
      execute: () => failing(cut, { ...attached, attached: false }),
    });
    const executions = workspace.executionsUnder(undefined, "ExecuteInteractive");
    const nothing = async function* (): AsyncGenerator<never> {};
    await expect(collect(executions.interactive(executionWish(), nothing(), patient))).rejects.toMatchObject({
      reason: "EXECUTION_DETACHED",
      status: "UNKNOWN",
    });
  });

  it("names the offset behind what was not delivered, where a gap came last", async () => {
    const gap = { t: "gap", from: 15, to: 40, reason: "dropped" } as const;
    const workspace = await workspaceWith(
      (executions) => {
        executions.attach = () => failing(cut, attached, output, gap);
      },
      { execute: () => failing(cut, { ...attached, attached: false }, output, gap) },
    );
    const behind = { reason: "EXECUTION_DETACHED", metadata: { next_offset: "40" } };
    const attach = workspace.executionsUnder(undefined, "AttachExecution").attach(wish, patient);
    await expect(collect(attach)).rejects.toMatchObject(behind);
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject(behind);
  });

  it("says of a read that nothing was changed, of a signal that it may have been sent", async () => {
    const workspace = await workspaceWith((executions) => {
      executions.get = () => Promise.reject(cut);
      executions.list = () => Promise.reject(cut);
      executions.signal = () => Promise.reject(cut);
    });
    const executions = workspace.executionsUnder(undefined, "X");
    await expect(executions.get(x, patient)).rejects.toMatchObject({ reason: "AGENT_UNREACHABLE" });
    await expect(executions.list(patient)).rejects.toMatchObject({ reason: "AGENT_UNREACHABLE" });
    await expect(
      executions.signal({ executionId: x, signal: "INT", expectedBootId: undefined }, patient),
    ).rejects.toMatchObject({
      reason: "EXECUTION_DETACHED",
      status: "UNKNOWN",
    });
  });
});
