import { fileCallTimeoutMs } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  collect,
  openWish,
  patient,
  type Stage,
  settleTasks,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import type { ReadEvent, WriteWish } from "../ports/files.ts";
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import { isHandleOver } from "../refusals.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
  on.guests.calls.length = 0;
});

const agent = () => on.guests.agent(podUid());
const reads = () => on.cluster.plan.count("readSandbox");

function podUid() {
  const uid = on.cluster.pods(id)[0]?.uid;
  if (uid === undefined) throw new Error("no pod stands");
  return uid;
}

const writeWish = (path: string, more: Partial<WriteWish> = {}): WriteWish => ({
  path,
  mode: undefined,
  ifAbsent: false,
  ifUnchanged: undefined,
  makeParents: false,
  sizeBytes: undefined,
  ...more,
});

async function* content(...parts: string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

const write = (path: string, ...parts: string[]) => workspace.files.write(writeWish(path), content(...parts), patient);

async function textOf(path: string): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const event of workspace.files.read({ path, offset: 0, lengthBytes: undefined }, patient)) {
    if (event.t === "chunk") parts.push(event.data);
  }
  return Buffer.concat(parts).toString();
}

describe("files of a workspace", () => {
  it("are the guest's, at the cost of no read of the cluster", async () => {
    expect(await write("f", "ab", "c")).toMatchObject({ path: "f", sizeBytes: 3 });
    expect(await textOf("f")).toBe("abc");
    expect(await workspace.files.stat("f", patient)).toMatchObject({ type: "regular", sizeBytes: 3 });
    await workspace.files.makeDirectory({ path: "d/e", makeParents: true, mode: undefined }, patient);
    await workspace.files.move({ from: "f", to: "d/g", replace: false }, patient);
    expect(
      (await collect(workspace.files.list("d", patient)))
        .flat()
        .map(({ path }) => path)
        .sort(),
    ).toEqual(["d/e", "d/g"]);
    await workspace.files.remove({ path: "d", recursive: true }, patient);
    const walk = { path: "", glob: "", maxDepth: undefined, maxEntries: undefined, maxVisited: 10, hidden: true };
    expect((await collect(workspace.files.walk(walk, patient))).flat()).toEqual([]);
    expect(on.cluster.plan.requests).toEqual([]);
    expect(workspace.view().live.executions).toBe(0);
  });

  it("are refused up front while suspended, by name, with nothing dialled and nothing pulled", async () => {
    await workspace.suspend(suspendWish, patient);
    on.guests.calls.length = 0;
    let pulled = false;
    const source = (async function* () {
      pulled = true;
      yield Buffer.from("x");
    })();
    const refused = { reason: "WORKSPACE_SUSPENDED", metadata: { noticed_by: "ADMISSION", operation: "WriteFile" } };
    await expect(workspace.files.write(writeWish("f"), source, patient)).rejects.toMatchObject(refused);
    await expect(workspace.files.stat("f", patient)).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    await expect(collect(workspace.files.list("", patient))).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    expect([pulled, on.guests.calls]).toEqual([false, []]);
  });

  it("are GUEST_FEATURE_MISSING where the guest announced no files, before anything is sent", async () => {
    const old = stage();
    old.guests.shape = (script) => {
      const { health } = script;
      script.health = async (within) => ({ ...(await health(within)), features: ["executions", "probe"] });
    };
    const other = new Workspace(id, old.deps);
    await other.open(openWish, patient);
    const before = old.guests.calls.length;
    await expect(other.files.stat("f", patient)).rejects.toMatchObject({
      reason: "GUEST_FEATURE_MISSING",
      metadata: { feature: "files", operation: "StatFile" },
    });
    await expect(other.files.write(writeWish("f"), content("x"), patient)).rejects.toMatchObject({
      reason: "GUEST_FEATURE_MISSING",
    });
    expect(old.guests.calls).toHaveLength(before);
  });
});

describe("L39 files and a guest that moved", () => {
  it("follow it once: nothing had been sent to the one that was lost", async () => {
    on.cluster.replacePod(id);
    expect(await write("f", "abc")).toMatchObject({ sizeBytes: 3 });
    on.cluster.replacePod(id);
    await expect(workspace.files.stat("f", patient)).rejects.toMatchObject({ reason: "FILE_NOT_FOUND" });
    expect(on.guests.count("files")).toBe(4);
  });

  it("a write does not follow once its content was pulled, and nothing was written", async () => {
    agent().files.write = async (_, source) => {
      await source[Symbol.asyncIterator]().next();
      on.cluster.replacePod(id);
      throw new GuestNotReached("no-connection", "gone");
    };
    await expect(write("f", "a", "b")).rejects.toMatchObject({ reason: "AGENT_UNREACHABLE" });
    expect(on.guests.count("files")).toBe(1);
  });

  it("a write whose content was pulled is never begun again on another handle", async () => {
    agent().files.write = async (_, source) => {
      await source[Symbol.asyncIterator]().next();
      on.cluster.foreignDelete(id);
      throw new GuestNotReached("no-connection", "gone");
    };
    const failure = await write("f", "a", "b").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(HoldfastError);
    expect(isHandleOver(failure)).toBe(false);
  });

  it("a read follows before its first event and never after", async () => {
    await write("f", "abc");
    agent().files.read = async function* () {
      yield { t: "chunk", offset: 0, data: Buffer.from("a") } satisfies ReadEvent;
      on.cluster.replacePod(id);
      throw new GuestNotReached("no-connection", "gone");
    };
    await expect(
      collect(workspace.files.read({ path: "f", offset: 0, lengthBytes: undefined }, patient)),
    ).rejects.toMatchObject({
      reason: "AGENT_UNREACHABLE",
      metadata: { next_offset: "1" },
    });
  });
});

describe("L36 files and a link that broke", () => {
  const lose = async (): Promise<never> => {
    throw new GuestLost("reset");
  };

  it("a change that was sent is FILE_OUTCOME_UNKNOWN, after one re-read, and is never sent again", async () => {
    const { files } = agent();
    Object.assign(files, { makeDirectory: lose, remove: lose, move: lose });
    const changes = [
      () => workspace.files.makeDirectory({ path: "d", makeParents: false, mode: undefined }, patient),
      () => workspace.files.remove({ path: "d", recursive: true }, patient),
      () => workspace.files.move({ from: "a", to: "b", replace: false }, patient),
    ];
    for (const change of changes) {
      await expect(change()).rejects.toMatchObject({ reason: "FILE_OUTCOME_UNKNOWN", cause: expect.any(GuestLost) });
    }
    expect([reads(), on.guests.count("files")]).toEqual([3, 3]);
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("a write says what is known: the old content where the new one was not sent whole, else one of the two", async () => {
    agent().files.write = async (_, source) => {
      await source[Symbol.asyncIterator]().next();
      throw new GuestLost("reset");
    };
    await expect(write("f", "a", "b")).rejects.toMatchObject({
      reason: "FILE_OUTCOME_UNKNOWN",
      status: "UNKNOWN",
      message: expect.stringContaining("what stood there stands as it was"),
      metadata: { path: "f", content_sent: "in_part" },
    });
    agent().files.write = async (_, source) => {
      await collect(source);
      throw new GuestLost("reset");
    };
    await expect(write("f", "a", "b")).rejects.toMatchObject({
      reason: "FILE_OUTCOME_UNKNOWN",
      message: expect.stringContaining("never a mixture"),
      metadata: { path: "f", content_sent: "whole" },
    });
  });

  it("a call that only reads changed nothing, and may be made again", async () => {
    Object.assign(agent().files, { stat: lose });
    await expect(workspace.files.stat("f", patient)).rejects.toMatchObject({
      reason: "AGENT_UNREACHABLE",
      message: expect.stringContaining("Nothing was changed"),
    });
  });

  it("a short call that is not answered in time is over: unknown for a change", async () => {
    Object.assign(agent().files, {
      makeDirectory: (_: unknown, within: Parameters<typeof silence>[0]) => silence(within),
    });
    const call = workspace.files.makeDirectory({ path: "d", makeParents: false, mode: undefined }, patient);
    await expect(on.clock.runUntilSettled(call, fileCallTimeoutMs)).rejects.toMatchObject({
      reason: "FILE_OUTCOME_UNKNOWN",
    });
  });

  it("is WORKSPACE_SUSPENDED, noticed by TRANSPORT, when somebody suspended it", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    Object.assign(agent().files, { stat: lose });
    await expect(workspace.files.stat("f", patient)).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "TRANSPORT" },
    });
  });
});

describe("the content of a write", () => {
  it("that throws is what the caller hears, whatever the guest's client makes of it; the old file stands", async () => {
    await write("f", "old");
    const broken = (async function* () {
      yield Buffer.from("new");
      throw new HoldfastError("INVALID_REQUEST", { message: "no more" });
    })();
    const { write: really } = agent().files;
    agent().files.write = (wish, source, signal) =>
      really.call(agent().files, wish, source, signal).catch(() => Promise.reject(new GuestLost("wrapped")));
    await expect(workspace.files.write(writeWish("f"), broken, patient)).rejects.toMatchObject({ message: "no more" });
    expect(await textOf("f")).toBe("old");
    expect(reads()).toBe(1);
  });

  it("is let go with the caller's own reason when the caller goes away", async () => {
    const caller = new AbortController();
    const endless = (async function* () {
      yield Buffer.from("x");
      await silence(caller);
    })();
    const writing = workspace.files.write(writeWish("f"), endless, caller.signal);
    const failure = writing.catch((error: unknown) => error);
    await settleTasks();
    const reason = new Error("enough");
    caller.abort(reason);
    expect(await failure).toBe(reason);
    await expect(workspace.files.stat("f", patient)).rejects.toMatchObject({ reason: "FILE_NOT_FOUND" });
    expect(reads()).toBe(0);
  });
});
