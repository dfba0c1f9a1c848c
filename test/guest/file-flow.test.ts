import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { never, reads, repeated, writes } from "./file-calls.ts";
import { clientOf, type GuestProcess, guestProcess } from "./guest-process.ts";

const mebibyte = 1024 * 1024;

async function guestFiles() {
  const guest = await guestProcess();
  return { ...guest, files: clientOf(guest.address).files, at: (path: string) => join(guest.root, path) };
}

/** The most that the agent's resident memory grew while something ran. */
async function growthOf(guest: GuestProcess, work: () => Promise<unknown>): Promise<number> {
  const rss = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${guest.child.pid}/status`, "utf8"))?.[1]) * 1024;
  const before = rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, rss());
  }, 20);
  await work();
  clearInterval(timer);
  return most - before;
}

describe("large files", () => {
  it("G5 G28 go up and down in memory that does not depend on their size", async () => {
    const guest = await guestFiles();
    const piece = Buffer.alloc(65_536, 7);
    const bytes = 512 * mebibyte;
    const up = await growthOf(guest, () =>
      writes(guest.files, "large", repeated(piece, bytes / piece.length), { sizeBytes: bytes }),
    );
    let read = 0;
    const down = await growthOf(guest, async () => {
      for await (const event of guest.files.read({ path: "large", offset: 0, lengthBytes: undefined }, never)) {
        if (event.t === "chunk") read += event.data.length;
      }
    });
    expect(read).toBe(bytes);
    expect(up).toBeLessThan(160 * mebibyte);
    expect(down).toBeLessThan(160 * mebibyte);
  });

  it("G5 a reader that stops costs the agent nothing, and other calls go on", async () => {
    const guest = await guestFiles();
    fs.writeFileSync(guest.at("large"), Buffer.alloc(64 * mebibyte, 1));
    const run = guest.files.read({ path: "large", offset: 0, lengthBytes: undefined }, never)[Symbol.asyncIterator]();
    await run.next();
    await run.next();
    const growth = await growthOf(guest, async () => {
      for (let turn = 0; turn < 20; turn += 1) {
        await writes(guest.files, "small", `${turn}`);
        expect((await reads(guest.files, "small")).toString()).toBe(`${turn}`);
      }
    });
    expect(growth).toBeLessThan(64 * mebibyte);
    let rest = 0;
    for (let next = await run.next(); !next.done; next = await run.next()) {
      if (next.value.t === "chunk") rest += next.value.data.length;
    }
    expect(rest).toBeGreaterThan(63 * mebibyte);
  });

  it("B41 a content that comes slowly is waited for, and comes whole", async () => {
    const { files } = await guestFiles();
    await writes(files, "other", "");
    const slowly = async function* () {
      for (let turn = 0; turn < 5; turn += 1) {
        for (let call = 0; call < 20; call += 1) await reads(files, "other"); // Others are served meanwhile.
        yield Buffer.alloc(100_000, turn);
      }
    };
    expect(await writes(files, "slow", slowly())).toMatchObject({ sizeBytes: 500_000 });
  });
});

describe("many small files", () => {
  it("are all written, 32 at a time, and the agent's own folder is gone when they are", async () => {
    const { files, root } = await guestFiles();
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let n = next++; n < 400; n = next++) await writes(files, `f${n}`, `content ${n}`);
    };
    await Promise.all(Array.from({ length: 32 }, worker));
    const names = fs.readdirSync(root);
    expect(names).toHaveLength(400);
    for (const name of names) expect(fs.readFileSync(join(root, name), "utf8")).toBe(`content ${name.slice(1)}`);
  });
});
