import { readFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { afterAll, beforeAll, expect, it } from "vitest";
import { clientsOf, dataFolder, eventually, startCluster, startServiceOn } from "../whole/harness.ts";

/** The whole load with HOLDFAST_LOAD=full; else enough of it to see that memory stays flat. */
const isFull = process.env.HOLDFAST_LOAD === "full";
const workspaces = isFull ? 16 : 2;
const terminals = isFull ? 1_000 : 32;
const commands = isFull ? 64 : 8;
const rounds = isFull ? 6 : 4;
const atOnce = 32;

let folder: Awaited<ReturnType<typeof dataFolder>>;
let cluster: Awaited<ReturnType<typeof startCluster>>;
let service: Awaited<ReturnType<typeof startServiceOn>>;

beforeAll(async () => {
  folder = await dataFolder();
  cluster = await startCluster(folder.path);
  service = await startServiceOn(cluster.flags);
}, 60_000);
afterAll(async () => {
  await service?.stop();
  await cluster?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
}, 120_000);

const say = (line: string): void => void process.stdout.write(`${line}; load ${loadavg()[0]?.toFixed(1)}\n`);

async function residentMib(): Promise<number> {
  const text = await readFile(`/proc/${service.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) / 1024;
}

/** Runs the task for each number below `count`, so many at once. */
async function each(count: number, task: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const at = next;
      next += 1;
      await task(at);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

it(`${terminals} attached terminals over ${workspaces} workspaces and ${commands} commands at once: every byte once, memory flat`, async () => {
  const vanishing = new AbortController();
  // One connection for streams and one for what is typed, as a web backend has.
  const streams = clientsOf(service.target);
  const idOf = (at: number) => ({ workspaceId: `load-${at % workspaces}`, sessionId: `t${at}` });
  await each(workspaces, (at) => service.workspaces.openWorkspace({ workspaceId: `load-${at}` }));
  const texts: string[] = Array.from({ length: terminals }, () => "");
  const offsets: bigint[] = Array.from({ length: terminals }, () => 0n);
  const attachments: { attachmentId: string; next: bigint }[] = [];
  const faults: string[] = [];
  const following: Promise<unknown>[] = [];
  const beganMs = performance.now();
  await each(terminals, async (at) => {
    const line = "stty -echo; while read line; do echo got $line; done";
    const program = { command: "/bin/sh", args: ["-c", line], size: { columns: 80, rows: 24 } };
    await service.sessions.openTerminal({ ...idOf(at), program });
    await new Promise<void>((resolve, reject) => {
      const follow = async (): Promise<void> => {
        for await (const { event } of streams.sessions.attachTerminal(idOf(at), { signal: vanishing.signal })) {
          if (event.case === "attached") {
            attachments[at] = { attachmentId: event.value.attachmentId, next: event.value.nextInputSequence };
            resolve();
          } else if (event.case === "data") {
            if (event.value.offset !== offsets[at]) faults.push(`${at}: ${event.value.offset} for ${offsets[at]}`);
            offsets[at] = event.value.offset + BigInt(event.value.data.length);
            texts[at] += Buffer.from(event.value.data).toString("latin1");
          } else faults.push(`${at}: ${event.case}`);
        }
      };
      following.push(
        follow().catch((error: unknown) => {
          reject(error);
          if (!vanishing.signal.aborted) faults.push(`${at}: ${error}`);
        }),
      );
    });
  });
  say(`${terminals} terminals attached in ${((performance.now() - beganMs) / 1000).toFixed(1)} s`);

  const memory: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedMs = performance.now();
    await Promise.all([
      each(terminals, async (at) => {
        const attachment = attachments[at];
        if (!attachment) throw new Error(`${at} is not attached`);
        const write = { ...idOf(at), attachmentId: attachment.attachmentId, sequence: attachment.next };
        const { nextInputSequence } = await service.sessions.writeTerminal({
          ...write,
          data: Buffer.from(`${at} in round ${round}\n`),
        });
        attachment.next = nextInputSequence;
      }),
      ...Array.from({ length: commands }, async (_, at) => {
        let next = 0n;
        const command = { workspaceId: `load-${at % workspaces}`, command: "seq", args: ["50000"] };
        for await (const { event } of streams.executions.execute(command)) {
          if (event.case !== "output") continue;
          if (event.value.offset !== next) faults.push(`command ${at}: ${event.value.offset} for ${next}`);
          next += BigInt(event.value.data.length);
        }
        if (next !== 288_894n) faults.push(`command ${at} delivered ${next} bytes`);
      }),
    ]);
    const expected = (at: number): string =>
      Array.from({ length: round + 1 }, (_, one) => `got ${at} in round ${one}\r\n`).join("");
    await eventually(120_000, async () => (texts.every((text, at) => text === expected(at)) ? true : undefined));
    memory.push(Math.round(await residentMib()));
    say(`round ${round}: ${((performance.now() - startedMs) / 1000).toFixed(1)} s, ${memory.at(-1)} MiB resident`);
  }
  expect(faults).toEqual([]);
  const { counters } = await service.server.getServerInfo({});
  expect(counters).toMatchObject({ attachments: terminals, streams: terminals, handles: workspaces });
  say(`${counters?.guestConnections} connections to ${workspaces} guests`);
  // What the first rounds make the heap grow to is what it stays at.
  expect(memory.at(-1) ?? 0).toBeLessThan((memory[1] ?? 0) * 1.25 + 32);

  vanishing.abort();
  await Promise.all(following);
  await eventually(60_000, async () => {
    const { counters: left } = await service.server.getServerInfo({});
    return left && left.attachments + left.streams + left.calls === 0 ? true : undefined;
  });
}, 900_000);
