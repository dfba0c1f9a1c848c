import { attachmentIdOf, type HolderEpoch, holderEpochFrom } from "@holdfast/contract";
import {
  collect,
  executionId,
  executionWish,
  openWish,
  patient,
  type Stage,
  stage,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import type { Guest } from "../ports/guest.ts";
import { Workspace } from "../workspace.ts";

type Epoch = HolderEpoch | undefined;

const id = workspaceId("demo");
const [five, six, four] = [holderEpochFrom(5), holderEpochFrom(6), holderEpochFrom(4)];
const everything = [
  "execution-control",
  "executions",
  "files",
  "flush",
  "holder-epoch",
  "ports",
  "probe",
  "quiesce",
  "sessions",
];
let on: Stage;
let workspace: Workspace;
/** Under which epochs the guest was asked. */
let told: Epoch[];

beforeEach(async () => {
  on = stage();
  on.guests.shape = (script) => {
    const { health } = script;
    script.health = async (within) => ({ ...(await health(within)), features: everything });
  };
  const heard = (guest: Guest): Guest => {
    const under = guest.under.bind(guest);
    const heardUnder = (epoch: Epoch): Guest => {
      told.push(epoch);
      return heard(under(epoch));
    };
    return Object.assign(guest, { under: heardUnder });
  };
  const guests: typeof on.deps.guests = { guest: (address) => heard(on.guests.guest(address)) };
  workspace = new Workspace(id, { ...on.deps, guests });
  await workspace.open({ ...openWish, fencing: { t: "epoch", epoch: five } }, patient);
  on.guests.calls.length = 0;
  told = [];
});

const files = (epoch: Epoch) => workspace.filesUnder(epoch);
const executions = (epoch: Epoch) => workspace.executionsUnder(epoch, "X");
const sessions = (epoch: Epoch) => workspace.sessionsUnder(epoch, "X");
const disk = (epoch: Epoch) => workspace.diskUnder(epoch);
async function* nothing(): AsyncGenerator<never> {}

const x = executionId("x");
const s = "s" as never;
const expectedBootId = undefined;
const attachmentId = attachmentIdOf("a");
const write = {
  path: "f",
  mode: undefined,
  ifAbsent: false,
  ifUnchanged: undefined,
  makeParents: false,
  sizeBytes: undefined,
};
const walk = { path: "", glob: "", maxDepth: undefined, maxEntries: undefined, maxVisited: 10, hidden: false };
const program = {
  sessionId: s,
  kind: "terminal",
  command: "",
  args: [],
  cwd: undefined,
  env: {},
  size: undefined,
  login: false,
  clientBound: false,
  expectedBootId,
} as const;
const attachment = { sessionId: s, fromOffset: 0, size: undefined, attachmentId: undefined, expectedBootId };
const attach = (mode: "exclusive" | "observe", epoch: Epoch) =>
  collect(sessions(epoch).attach({ ...attachment, mode }, "kept", patient));

const changing: Readonly<Record<string, (epoch: Epoch) => Promise<unknown>>> = {
  Execute: (epoch) => collect(workspace.execute(executionWish(), patient, epoch)),
  ExecuteInteractive: (epoch) => collect(executions(epoch).interactive(executionWish(), nothing(), patient)),
  SignalExecution: (epoch) => executions(epoch).signal({ executionId: x, signal: "INT", expectedBootId }, patient),
  CancelExecution: (epoch) => executions(epoch).cancel({ executionId: x }, patient),
  WriteFile: (epoch) => files(epoch).write(write, nothing(), patient),
  MakeDirectory: (epoch) => files(epoch).makeDirectory({ path: "d", makeParents: false, mode: undefined }, patient),
  RemoveFile: (epoch) => files(epoch).remove({ path: "f", recursive: false }, patient),
  MoveFile: (epoch) => files(epoch).move({ from: "f", to: "g", replace: false }, patient),
  OpenTerminal: (epoch) => sessions(epoch).open(program, patient),
  "AttachTerminal EXCLUSIVE": (epoch) => attach("exclusive", epoch),
  WriteTerminal: (epoch) =>
    sessions(epoch).write({ sessionId: s, attachmentId, sequence: 1, data: new Uint8Array(1) }, patient),
  ResizeTerminal: (epoch) =>
    sessions(epoch).resize({ sessionId: s, attachmentId, size: { columns: 1, rows: 1 } }, patient),
  KillSession: (epoch) => sessions(epoch).kill({ sessionId: s, signal: "KILL" }, patient),
  Connect: (epoch) => collect(workspace.connectPort({ host: "127.0.0.1", port: 80 }, nothing(), patient, epoch)),
  QuiesceWorkspace: (epoch) => disk(epoch).quiesce({ graceMs: undefined, holdMs: undefined }, patient),
  ReleaseWorkspace: (epoch) => disk(epoch).release("h", patient),
  FlushWorkspace: (epoch) => disk(epoch).flush(1_000, patient),
};

const reading: Readonly<Record<string, (epoch: Epoch) => Promise<unknown>>> = {
  AttachExecution: (epoch) =>
    collect(
      executions(epoch).attach({ executionId: x, fromOffset: 0, maxOutputBytes: undefined, expectedBootId }, patient),
    ),
  GetExecution: (epoch) => executions(epoch).get(x, patient),
  ListExecutions: (epoch) => executions(epoch).list(patient),
  ReadFile: (epoch) => collect(files(epoch).read({ path: "f", offset: 0, lengthBytes: undefined }, patient)),
  StatFile: (epoch) => files(epoch).stat("f", patient),
  ListDirectory: (epoch) => collect(files(epoch).list("", patient)),
  WalkFiles: (epoch) => collect(files(epoch).walk(walk, patient)),
  "AttachTerminal OBSERVE": (epoch) => attach("observe", epoch),
  ReadSession: (epoch) =>
    sessions(epoch).read({ sessionId: s, fromOffset: 0, maxBytes: undefined, waitMs: 0 }, patient),
  ListSessions: (epoch) => sessions(epoch).list(patient),
};

/** The reason that a call fails with; "" where it succeeds. */
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => "",
    (error: { readonly reason?: string }) => error.reason ?? String(error),
  );

describe("L21 on a workspace that is fenced at 5", () => {
  it.each(Object.entries(changing))(
    "%s changes something: only the holder may, and nothing is sent for others",
    async (_, call) => {
      expect(await reasonOf(call(undefined))).toBe("HOLDER_EPOCH_REQUIRED");
      expect(await reasonOf(call(four))).toBe("HOLDER_EPOCH_SUPERSEDED");
      expect(await reasonOf(call(six))).toBe("HOLDER_EPOCH_NOT_TAKEN");
      expect([told, on.guests.calls]).toEqual([[], []]);
      expect(await reasonOf(call(five))).not.toMatch(/^HOLDER_EPOCH/);
      expect(new Set(told)).toEqual(new Set([five]));
    },
  );

  it.each(Object.entries(reading))(
    "%s only reads: whoever calls, whatever number he carries, which the guest is not told",
    async (_, call) => {
      for (const epoch of [undefined, four, six]) expect(await reasonOf(call(epoch))).not.toMatch(/^HOLDER_EPOCH/);
      expect(told).toEqual([undefined, undefined, undefined]);
    },
  );
});
