import { openWish, patient, type Stage, settleTasks, stage, suspendWish, workspaceId } from "@holdfast/testkit";
import { beforeEach, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");

let on: Stage;
let workspace: Workspace;
/** The next answer about the object is held back until it resolves. */
let late: { readonly read: PromiseWithResolvers<void>; readonly answer: PromiseWithResolvers<void> } | undefined;

beforeEach(async () => {
  on = stage();
  late = undefined;
  const read = on.deps.cluster.readSandbox.bind(on.deps.cluster);
  on.deps.cluster.readSandbox = async (name, within) => {
    const found = await read(name, within);
    const held = late;
    late = undefined;
    held?.read.resolve();
    await held?.answer.promise;
    return found;
  };
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  await settleTasks();
});

/** Holds back the answer to the read of the object that comes next. */
function holdAnswer() {
  const held = { read: Promise.withResolvers<void>(), answer: Promise.withResolvers<void>() };
  late = held;
  return held;
}

it("L37 an answer from before a resume, of a suspend by somebody, does not suspend what the resume bound", async () => {
  const held = holdAnswer();
  on.cluster.foreignMode(id, "Suspended");
  const looked = workspace.heard({ t: "missed" });
  await held.read.promise;
  await workspace.resume({ readyTimeoutMs: 300_000 }, patient);
  held.answer.resolve();
  await settleTasks();
  expect(workspace.state.t).toBe("active");
  await on.clock.advance(250); // It looks again.
  await looked;
  expect(workspace.state.t).toBe("active");
});

it("L25 an answer from before a resume does not confirm the suspend that came after it", async () => {
  const held = holdAnswer();
  on.cluster.foreignMode(id, "Suspended");
  const first = workspace.heard({ t: "missed" });
  await held.read.promise;
  const last = holdAnswer(); // Of the pods, it was seen that there are none.
  held.answer.resolve();
  await last.read.promise;
  expect(workspace.state.t).toBe("suspending");
  await workspace.resume({ readyTimeoutMs: 300_000 }, patient);
  on.cluster.habits.podsEnd = false;
  const suspending = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient).catch((error) => error);
  await settleTasks();
  await on.clock.advance(1_000);
  expect(await suspending).toMatchObject({ reason: expect.stringMatching(/./) });
  expect([workspace.state.t, on.cluster.pods(id).length]).toEqual(["suspending", 1]);
  last.answer.resolve();
  await first;
  expect(workspace.state.t).toBe("suspending");
});
