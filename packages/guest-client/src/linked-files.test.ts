import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import {
  ListResponseSchema,
  ReadResponseSchema,
  WatchResponseSchema,
  WriteResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/file_pb";
import { fileChunkMaxBytes } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { ManualClock, settleTasks } from "@holdfast/testkit";
import { GuestLost, type ReadEvent, type WriteWish } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { LinkedFiles } from "./linked-files.ts";
import { type Opened, ScriptedLink } from "./scripted-link.testing.ts";

const never = new AbortController().signal;
const wire = <T extends DescMessage>(schema: T, init: object): Buffer =>
  Buffer.from(toBinary(schema, create(schema, init as never)));
const say = <T extends DescMessage>({ listener }: Opened, schema: T, init: object): void =>
  listener.message(wire(schema, init));
const file = (size: number) => ({ file: { path: "a", size: BigInt(size) } });

function files(onOpen: ScriptedLink["onOpen"]) {
  const scripted = new ScriptedLink();
  scripted.onOpen = onOpen;
  return { scripted, files: new LinkedFiles(scripted.link, new ManualClock()) };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = [];
  for await (const item of items) got.push(item);
  return got;
}

describe("G28 a file that is read", () => {
  const read = (onOpen: ScriptedLink["onOpen"], offset = 0, lengthBytes?: number): Promise<ReadEvent[]> =>
    all(files(onOpen).files.read({ path: "a", offset, lengthBytes }, never));
  const of =
    (size: number, ...pieces: readonly string[]) =>
    (opened: Opened): void => {
      say(opened, ReadResponseSchema, file(size));
      for (const piece of pieces) opened.listener.data(Buffer.from(piece));
      opened.listener.over(undefined);
    };

  it("is whole only with exactly the bytes that were wished and that it has", async () => {
    expect(await read(of(3, "ab", "c"))).toMatchObject([
      { t: "opened" },
      { t: "chunk", offset: 0, data: Buffer.from("abc") },
    ]);
    expect(await read(of(9, "cd"), 2, 2)).toMatchObject([{ t: "opened" }, { t: "chunk", offset: 2 }]);
    expect(await read(of(3, "c"), 2, 9)).toHaveLength(2);
    for (const [offset, length, size, pieces] of [
      [0, undefined, 3, ["ab"]],
      [0, undefined, 3, ["abcd"]],
      [2, 2, 9, ["cde"]],
      [2, 2, 9, ["c"]],
    ] as const) {
      await expect(read(of(size, ...pieces), offset, length)).rejects.toBeInstanceOf(GuestLost);
    }
  });

  it("never has a byte behind its end, though the guest sends one", async () => {
    const { files: guest } = files(of(3, "abcd"));
    const got: string[] = [];
    const reading = (async () => {
      for await (const { t } of guest.read({ path: "a", offset: 0, lengthBytes: undefined }, never)) got.push(t);
    })();
    await expect(reading).rejects.toBeInstanceOf(GuestLost);
    expect(got).toEqual(["opened"]);
  });

  it("comes in chunks that are joined up to what a message holds, and no further", async () => {
    const piece = "x".repeat(fileChunkMaxBytes / 2);
    const events = await read(of(2.5 * fileChunkMaxBytes, piece, piece, piece, piece, piece));
    expect(events.slice(1).map((event) => event.t === "chunk" && event.data.length)).toEqual([
      fileChunkMaxBytes,
      fileChunkMaxBytes,
      fileChunkMaxBytes / 2,
    ]);
  });

  it("G5 holds the guest back while its reader stands still, and its reader's going ends it", async () => {
    const { scripted, files: guest } = files((opened) => {
      say(opened, ReadResponseSchema, file(4 * 1024 * 1024));
      opened.listener.data(Buffer.alloc(1024 * 1024));
    });
    for await (const _first of guest.read({ path: "a", offset: 0, lengthBytes: undefined }, never)) break;
    expect(scripted.opened[0]?.asked).toEqual(["pause"]);
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: true }]);
  });

  it("ends at once when its caller aborts, also where the guest says nothing", async () => {
    const { scripted, files: guest } = files(() => undefined);
    const caller = new AbortController();
    const reading = all(guest.read({ path: "a", offset: 0, lengthBytes: undefined }, caller.signal));
    reading.catch(() => undefined);
    await settleTasks();
    const gone = new Error("gone");
    caller.abort(gone);
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: true }]); // At once: its reader may be busy.
    await expect(reading).rejects.toBe(gone);
  });
});

describe("what a guest calls complete", () => {
  it("is a list only of messages, a removal only with an answer, and a watch never", async () => {
    const bytes = files(({ listener }) => {
      listener.data(Buffer.from("x"));
      listener.over(undefined);
    });
    await expect(all(bytes.files.list("a", never))).rejects.toBeInstanceOf(GuestLost);
    const listed = files((opened) => {
      say(opened, ListResponseSchema, { files: [{ path: "b" }] });
      opened.listener.over(undefined);
    });
    expect(await all(listed.files.list("a", never))).toMatchObject([[{ path: "b" }]]);
    const silent = files(({ listener }) => listener.over(undefined));
    await expect(silent.files.remove({ path: "a", recursive: false }, never)).rejects.toBeInstanceOf(GuestLost);
    await expect(all(silent.files.watch({ path: "a", recursive: false }, never))).rejects.toBeInstanceOf(GuestLost);
  });

  it("B66 an overflow of a watch is told", async () => {
    const { files: guest } = files((opened) => say(opened, WatchResponseSchema, { overflow: "queue" }));
    for await (const event of guest.watch({ path: "a", recursive: false }, never)) {
      expect(event).toEqual({ t: "overflow", cause: "queue" });
      break;
    }
  });
});

describe("G27 a file that is written", () => {
  const wish: WriteWish = {
    path: "a",
    mode: undefined,
    ifAbsent: true,
    ifUnchanged: "etag-1",
    makeParents: false,
    sizeBytes: undefined,
  };
  /** A content that tells whether it was let go before its end. */
  function content(...parts: (Buffer | Promise<Buffer>)[]) {
    const state = { left: false };
    const iterable: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          const part = await parts.shift();
          return part === undefined ? { done: true, value: undefined } : { done: false, value: part };
        },
        return: async () => {
          state.left = true;
          return { done: true, value: undefined };
        },
      }),
    };
    return { iterable, state };
  }
  const hangs = new Promise<never>(() => undefined);

  it("carries its conditions, sends all and then EOF, and is answered by the guest's word alone", async () => {
    const { scripted, files: guest } = files(() => undefined);
    const { iterable, state } = content(Buffer.from("ab"), Buffer.from("c"));
    const writing = guest.write(wish, iterable, never);
    await settleTasks();
    const [opened] = scripted.opened;
    expect(opened?.request).toMatchObject({ path: "a", ifAbsent: true, ifUnchanged: "etag-1" });
    expect(opened?.sent).toEqual([Buffer.from("ab"), Buffer.from("c"), "eof"]);
    opened?.listener.message(wire(WriteResponseSchema, file(3)));
    opened?.listener.over(undefined);
    expect(await writing).toMatchObject({ sizeBytes: 3 });
    expect(state.left).toBe(false);
  });

  it("G5 waits for a guest that does not keep up", async () => {
    const { scripted, files: guest } = files((opened) => {
      opened.takes = false;
    });
    void guest.write(wish, content(Buffer.from("ab"), Buffer.from("c")).iterable, never).catch(() => undefined);
    await settleTasks();
    expect(scripted.opened[0]?.sent).toEqual([Buffer.from("ab")]);
    scripted.opened[0]?.drained.resolve();
    await settleTasks();
    expect(scripted.opened[0]?.sent).toEqual([Buffer.from("ab"), Buffer.from("c"), "eof"]);
  });

  it.each([
    ["while its content hangs", [hangs]],
    ["before its content was asked for", []],
  ])("B63 is refused as soon as the guest says so, without EOF, and lets its content go: %s", async (_when, parts) => {
    const refused = new AnsweredError("DISK_FULL", "full");
    const { scripted, files: guest } = files(async (opened) => {
      if (parts.length === 0) opened.listener.over(refused);
      await settleTasks();
    });
    const { iterable, state } = content(...(parts.length === 0 ? [hangs] : parts));
    const writing = guest.write(wish, iterable, never);
    writing.catch(() => undefined);
    await settleTasks();
    await settleTasks();
    scripted.opened[0]?.listener.over(refused);
    await expect(writing).rejects.toMatchObject({ reason: "DISK_FULL" });
    expect(scripted.opened[0]?.sent).toEqual([]);
    expect(scripted.opened[0]?.ended).toEqual([{ clientClosed: true }]);
    expect(state.left).toBe(true);
  });

  it("is not believed to be done before all was sent, nor without an answer", async () => {
    const early = files(({ listener }) => {
      listener.message(wire(WriteResponseSchema, file(3)));
      listener.over(undefined);
    });
    await expect(early.files.write(wish, content(hangs).iterable, never)).rejects.toBeInstanceOf(GuestLost);
    const { scripted, files: guest } = files(() => undefined);
    const writing = guest.write(wish, content().iterable, never);
    await settleTasks();
    scripted.opened[0]?.listener.over(undefined);
    await expect(writing).rejects.toThrow(/without an answer/);
  });
});
