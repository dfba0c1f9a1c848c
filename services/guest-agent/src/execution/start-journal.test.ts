import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { executionTombstoneKeptMs } from "@holdfast/contract";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { StartJournal } from "./start-journal.ts";
import { readMarks, type StartMark } from "./start-marks.ts";
import { parseExecutionId } from "./start-wish.ts";
import { Tombstones } from "./tombstones.ts";

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-journal-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const keepAll = (marks: readonly StartMark[]): readonly StartMark[] => marks;

/** What an agent process that comes now would read. */
async function marksIn(path: string): Promise<readonly StartMark[]> {
  let read: readonly StartMark[] = [];
  const journal = await StartJournal.open(path, (marks) => {
    read = marks;
    return marks;
  });
  journal.close();
  return read;
}

const started = (id: string, bootId = "boot-1"): StartMark => ({
  t: "started",
  id: parseExecutionId(id),
  hash: `hash-${id}`,
  bootId,
});

describe("the journal of starts", () => {
  it("G6 tells the next agent process every id that was started, and not those that were withdrawn", async () => {
    const path = directory();
    expect(await marksIn(path)).toEqual([]);
    const journal = await StartJournal.open(path, keepAll);
    for (const id of ["a", "b", "c"]) journal.append(started(id));
    journal.append({ t: "withdrawn", id: parseExecutionId("b") });
    journal.append({ t: "ended", id: parseExecutionId("c"), endedAtMs: 7 });
    // Not closed: the process was killed.
    const { a, c } = { a: started("a"), c: { ...started("c"), endedAtMs: 7 } };
    expect(await marksIn(path)).toEqual([c, a]);
    expect(await marksIn(path)).toEqual([c, a]);
  });

  it("G6 passes over a line without its end, and lines that say nothing", async () => {
    const path = directory();
    const lines = [
      `s a hash-a boot-1`,
      "\0\0\0\0",
      "x y z",
      "s ../b hash boot",
      "s only-an-id",
      "e nobody 5",
      "s b hash-b boot-1",
    ];
    writeFileSync(join(path, "executions"), `${lines.join("\n")}\ns c hash-c bo`);
    expect(await marksIn(path)).toEqual([started("a"), started("b")]);
    // And what comes after stands on a line of its own.
    const journal = await StartJournal.open(path, keepAll);
    journal.append(started("d"));
    expect((await marksIn(path)).map(({ id }) => id)).toEqual(["a", "b", "d"]);
  });

  it("G6 keeps an agent from starting that could not read or keep it", async () => {
    const path = directory();
    mkdirSync(join(path, "executions"));
    await expect(StartJournal.open(path, keepAll)).rejects.toThrow(/might run one twice.*HOLDFAST_AGENT_STATE_DIR/s);
    await expect(StartJournal.open(join(path, "absent"), keepAll)).rejects.toThrow(/does not serve/);
  });

  it("G6 is written anew when most of it says nothing any more, and loses nothing that comes meanwhile", async () => {
    const path = directory();
    const file = join(path, "executions");
    const journal = await StartJournal.open(path, keepAll);
    onTestFinished(() => journal.close());
    const alive = started("alive");
    journal.append(alive);
    const size = (): number => statSync(file).size;
    for (let at = 0; at < 9_000; at += 1) {
      journal.append(started(`n${at}`));
      journal.append({ t: "withdrawn", id: parseExecutionId(`n${at}`) });
    }
    const before = size();
    const tidying = journal.tidy(() => [alive]);
    void journal.tidy(() => []); // One is under way: this one does nothing.
    for (let at = 0; at < 500; at += 1) {
      journal.append(started(`m${at}`));
      if (at % 50 === 0) await new Promise(setImmediate);
    }
    await tidying;
    for (let at = 500; at < 600; at += 1) journal.append(started(`m${at}`));
    expect(size()).toBeLessThan(before / 5);
    expect((await marksIn(path)).map(({ id }) => id)).toEqual([
      "alive",
      ...Array.from({ length: 600 }, (_, at) => `m${at}`),
    ]);
    expect(readdirSync(path)).toEqual(["executions"]);
  });

  it("G6 whatever is done in whatever order, a process that comes after it reads the same", async () => {
    const ids = ["a", "b", "c", "d"].map(parseExecutionId);
    const deed = fc.record({
      what: fc.constantFrom("begin", "end", "withdraw", "restart", "tear"),
      at: fc.nat(3),
      ms: fc.nat(1_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(deed, { maxLength: 25 }), async (deeds) => {
        const path = mkdtempSync(join(tmpdir(), "holdfast-journal-test-"));
        try {
          let now = 1_000;
          let boot = 1;
          let stones = await Tombstones.open(path, `boot-${boot}`, () => now);
          /** What must be known of each id: the process that ran it. */
          const model = new Map<string, string>();
          const running = new Set<string>();
          for (const { what, at, ms } of deeds) {
            now += ms;
            const id = ids[at];
            if (id === undefined) continue;
            if (what === "begin" && !model.has(id)) {
              stones.begin(id, `hash-${id}`);
              model.set(id, `boot-${boot}`);
              running.add(id);
            } else if (what === "end" && running.delete(id)) stones.end(id);
            else if (what === "withdraw" && running.delete(id)) {
              stones.withdraw(id);
              model.delete(id);
            } else if (what === "restart" || what === "tear") {
              // Killed in the middle of a line, which then was not followed by its spawn.
              if (what === "tear") appendFileSync(join(path, "executions"), `s ${id} ha`);
              boot += 1;
              running.clear();
              stones = await Tombstones.open(path, `boot-${boot}`, () => now);
            }
            for (const known of ids) expect(stones.get(known)?.bootId).toBe(model.get(known));
          }
          expect(new Set(readMarks(readFileSync(join(path, "executions"), "latin1")).map((mark) => mark.id))).toEqual(
            new Set(model.keys()),
          );
        } finally {
          rmSync(path, { recursive: true, force: true });
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe("tombstones across agent processes", () => {
  it("G6 an id that was free again and ran again is the newest, not the oldest", () => {
    let now = 0;
    const unkept = { append: () => undefined, tidy: async () => undefined };
    const stones = new Tombstones("boot-1", unkept, () => now, 2);
    const run = (id: string): void => {
      stones.begin(parseExecutionId(id), "h");
      stones.end(parseExecutionId(id));
    };
    run("again");
    now = executionTombstoneKeptMs - 1;
    run("other");
    now += 1;
    run("again"); // Its day was over, so it ran; and the new day begins now.
    run("third");
    const known = ["again", "other", "third"].map((id) => stones.get(parseExecutionId(id)) !== undefined);
    expect(known).toEqual([true, false, true]);
  });

  it("G6 count a day from the end, or from the restart where nobody knows the end", async () => {
    const path = directory();
    let now = 0;
    const first = await Tombstones.open(path, "boot-1", () => now);
    const [ended, ran] = ["ended", "ran"].map(parseExecutionId);
    if (ended === undefined || ran === undefined) throw new Error("no ids");
    first.begin(ended, "h");
    first.begin(ran, "h");
    now = 10;
    first.end(ended);
    now = executionTombstoneKeptMs;
    const second = await Tombstones.open(path, "boot-2", () => now);
    expect(second.get(ended)).toMatchObject({ bootId: "boot-1" });
    now += 10;
    expect(second.get(ended)).toBeUndefined();
    expect(second.get(ran)).toMatchObject({ bootId: "boot-1" });
    // A further restart does not begin the day anew.
    const third = await Tombstones.open(path, "boot-3", () => now);
    now += executionTombstoneKeptMs - 11;
    expect(third.get(ran)).toMatchObject({ bootId: "boot-1" });
    now += 1;
    expect(third.get(ran)).toBeUndefined();
  });
});
