import type { AttachTerminalResponse } from "@holdfast/api/holdfast/v1/session_pb";
import { AttachMode } from "@holdfast/api/holdfast/v1/session_pb";
import { linkStreamCloseMs } from "@holdfast/contract";
import { describe, expect, it } from "vitest";
import { dataFolder, eventually, reasonOf, startService, webClientsOf } from "./harness.ts";

const lines = 400_000;
const sessionId = "t";
const workspaceId = "w";

const output = Buffer.from(Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join(""));

interface Read {
  bytes: number;
  /** Bytes that were reported as missing. */
  gap: bigint;
  position: bigint;
}

/** Reads on to the end, or as far as wished; fails where it is not one unbroken sequence of what the program wrote. */
async function readOn(events: AsyncIterator<AttachTerminalResponse>, read: Read, enough?: bigint): Promise<Read> {
  while (enough === undefined || read.position < enough) {
    const next = await events.next();
    if (next.done) break;
    const { event } = next.value;
    if (event.case === "data") {
      expect(event.value.offset).toBe(read.position);
      const { data } = event.value;
      expect(output.subarray(Number(read.position)).subarray(0, data.length).equals(data)).toBe(true);
      read.position += BigInt(data.length);
      read.bytes += data.length;
    } else if (event.case === "gap") {
      expect(event.value.from).toBe(read.position);
      read.gap += event.value.to - event.value.from;
      read.position = event.value.to;
    }
  }
  return read;
}

describe("a client that stands still", () => {
  it.each(["gRPC", "Connect"] as const)(
    "G5 G18 L44 is let go by the service at once when its attachment is ended by force, by %s; it reads why, and goes on from there",
    async (way) => {
      await using folder = await dataFolder();
      await using service = await startService(folder.path);
      const { sessions } = way === "gRPC" ? service : webClientsOf(service);
      const counters = async () => (await service.server.getServerInfo({})).counters;
      const attachments = async () => (await counters())?.attachments;
      await service.workspaces.openWorkspace({ workspaceId });
      const program = {
        command: "/bin/sh",
        args: ["-c", `stty raw -echo; until [ -e go ]; do sleep 0.02; done; seq ${lines}; exec sleep 1000`],
      };
      await sessions.openTerminal({ workspaceId, sessionId, program });
      const still = sessions.attachTerminal({ workspaceId, sessionId })[Symbol.asyncIterator]();
      const first = await still.next();
      expect(first.value?.event.case).toBe("attached");
      await service.files.putFile({ start: { workspaceId, path: "go" } });
      const written = await eventually(20_000, async () => {
        const [row] = (await service.sessions.listSessions({ workspaceId })).sessions;
        return row?.nextOffset === BigInt(output.length) ? row.nextOffset : undefined;
      });
      expect(await attachments()).toBe(1);
      const leaving = new AbortController();
      const displacing = service.sessions
        .attachTerminal({ workspaceId, sessionId, fromOffset: written }, { signal: leaving.signal })
        [Symbol.asyncIterator]();
      await displacing.next();
      const began = performance.now();
      leaving.abort();
      await displacing.next().catch(() => undefined); // Its own end.
      await eventually(10_000, async () => ((await attachments()) === 0 ? true : undefined));
      expect(performance.now() - began).toBeLessThan(linkStreamCloseMs);
      // It stands on, until the guest has closed the stream's socket: one connection that controls and two spare ones are left.
      await eventually(10_000, async () => ((await counters())?.guestConnections === 3 ? true : undefined));
      const read: Read = { bytes: 0, gap: 0n, position: 0n };
      expect(await reasonOf(readOn(still, read))).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
      expect(read.bytes).toBeGreaterThan(0);
      const rest = { workspaceId, sessionId, fromOffset: read.position, mode: AttachMode.OBSERVE };
      const enough = new AbortController();
      const observing = service.sessions.attachTerminal(rest, { signal: enough.signal })[Symbol.asyncIterator]();
      await readOn(observing, read, written);
      enough.abort();
      await observing.next().catch(() => undefined); // Its own end.
      expect(BigInt(read.bytes) + read.gap).toBe(written);
    },
    120_000,
  );
});
