import { createHash, randomBytes, randomInt } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { SessionService, TerminalVerb } from "@holdfast/api/holdfast/v1/session_pb";
import { describe, expect, it } from "vitest";
import { RemoteTerminal, type TerminalScreen } from "../../services/cli/src/terminal/remote-terminal.ts";
import { BrowserTerminal } from "./browser-terminal.ts";
import type { CuttingProxy } from "./cutting-proxy.ts";
import { terminalStage } from "./terminal-stage.ts";

const cuts = 50;

/** Reads so many bytes, unchanged, while it counts on its output; then tells what it has read. */
const program = (bytes: number): string =>
  `stty raw -echo; (i=0; while :; do i=$((i+1)); echo "$i"; sleep 0.002; done) & c=$!
   head -c ${bytes} > in; kill $c; wait $c 2>/dev/null; sleep 0.05; sha256sum < in`;

/** The messages that are typed: of all sizes. */
function messages(): Buffer[] {
  return Array.from({ length: cuts * 2 }, (_, at) =>
    randomBytes(at % 7 === 0 ? randomInt(8_000, 60_000) : randomInt(1, 300)),
  );
}

const hashOf = (typed: readonly Buffer[]): string => createHash("sha256").update(Buffer.concat(typed)).digest("hex");

const linesOf = (text: string): string[] => text.split("\n").map((line) => line.trim());

/** The program has read exactly what was typed. */
function expectHash(text: string, typed: readonly Buffer[]): void {
  expect(linesOf(text).find((line) => /^[0-9a-f]{64} /.test(line))).toBe(`${hashOf(typed)}  -`);
}

/** The count goes on by one from line to line, and the program has read exactly what was typed. */
function expectWhole(text: string, missing: bigint, typed: readonly Buffer[]): void {
  expect(missing).toBe(0n);
  const lines = linesOf(text);
  expectHash(text, typed);
  const counted = lines.filter((line) => /^\d+$/.test(line)).map(Number);
  expect(counted.length).toBeGreaterThan(cuts);
  expect(counted).toEqual(Array.from({ length: counted.length }, (_, at) => at + 1));
}

type Cut = (proxy: CuttingProxy, typed: Buffer) => Promise<void>;

/** Ways in which a connection may end, each begun before a message is typed. */
const kinds: readonly (readonly [string, Cut])[] = [
  ["at once", async (proxy) => proxy.cut()],
  ["within a frame's header, there", (proxy) => proxy.cutAfter("there", randomInt(1, 5))],
  ["within a frame's header, back", (proxy) => proxy.cutAfter("back", randomInt(1, 5))],
  // Within what the message itself sends: nothing else of any length goes there.
  ["somewhere there", (proxy, { length }) => proxy.cutAfter("there", randomInt(5, Math.min(400, length + 9)))],
  ["somewhere back", (proxy) => proxy.cutAfter("back", randomInt(5, 400))],
  ["between the effect and its acknowledgement", (proxy) => proxy.cutAfterSwallowing("back", 20)],
  ["after a silence", (proxy) => proxy.cutAfterSilence(40)],
];

/** Types everything, and cuts one of two messages. Every kind comes as often as the others. */
async function typeAndCut(
  proxy: CuttingProxy,
  typed: readonly Buffer[],
  type: (data: Buffer) => Promise<unknown> | unknown,
  isAttached: () => boolean,
) {
  let done = 0;
  const writes: Promise<unknown>[] = [];
  const begin = (data: Buffer): void => {
    const write = Promise.resolve(type(data));
    write.catch(() => undefined); // judged at the end, when all have been typed
    writes.push(write);
  };
  for (const [at, data] of typed.entries()) {
    if (at % 2 === 1) {
      begin(data);
      continue;
    }
    const kind = kinds[done % kinds.length];
    const isThere = () => proxy.connections > 0 && isAttached(); // There is something to be cut.
    await expect.poll(isThere, { interval: 5, timeout: 15_000 }).toBe(true);
    const cut = kind?.[1](proxy, data);
    begin(data);
    await cut;
    done += 1;
  }
  expect(done).toBe(cuts);
  await Promise.all(writes);
}

/** The client of `holdfast sh`, without a screen. */
function remoteTerminal(address: string, workspaceId: string, script: string) {
  const transport = createGrpcTransport({ baseUrl: `http://${address}`, pingIntervalMs: 300, pingTimeoutMs: 300 });
  const shown: Uint8Array[] = [];
  const begun = Promise.withResolvers<void>();
  const seen = { missing: 0n, unsure: 0, lost: 0, attached: true };
  const waiting: (() => void)[] = [];
  const screen: TerminalScreen = {
    show: async (data) => {
      shown.push(data);
      begun.resolve(); // It counts once its terminal is raw: what is typed before would mean a signal.
    },
    gap: (bytes) => {
      seen.missing += bytes;
    },
    unsure: (bytes) => {
      seen.unsure += bytes;
    },
    lost: () => {
      seen.lost += 1;
      seen.attached = false;
    },
    back: () => {
      seen.attached = true;
    },
    room: () => {
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
  const begin = {
    workspaceId,
    sessionId: "t",
    verb: TerminalVerb.OPEN_OR_ATTACH,
    program: { command: "sh", args: ["-c", script], cwd: "", env: {} },
  };
  const terminal = new RemoteTerminal(
    createClient(SessionService, transport),
    begin,
    screen,
    new AbortController().signal,
  );
  const attached = Promise.withResolvers<void>();
  const over = terminal.run(() => attached.resolve());
  over.catch(attached.reject);
  const type = async (data: Buffer): Promise<void> => {
    if (terminal.type(data)) return;
    await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return {
    terminal,
    /** Attached, and its program has begun. */
    attached: attached.promise.then(() => Promise.race([begun.promise, over])),
    over,
    type,
    seen,
    text: () => Buffer.concat(shown).toString("latin1"),
  };
}

describe("B27 L44 a terminal through 50 cuts during output and typing: no byte twice, none missing, either way", () => {
  it.each(["hop1", "hop2"] as const)(
    "on one stream, the links cut: %s",
    async (hop) => {
      const stage = await terminalStage();
      const typed = messages();
      const bytes = typed.reduce((sum, { length }) => sum + length, 0);
      const remote = remoteTerminal(stage.at.address, stage.workspaceId, program(bytes));
      await remote.attached;
      await typeAndCut(stage[hop], typed, remote.type, () => remote.seen.attached);
      expect(await remote.over).toMatchObject({ t: "exited", exit: { status: { case: "exitCode", value: 0 } } });
      expectWhole(remote.text(), remote.seen.missing, typed);
      expect(remote.seen.unsure).toBe(0);
      if (hop === "hop1") expect(remote.seen.lost).toBeGreaterThan(cuts / 3);
      else expect(remote.seen.lost).toBe(0); // The client hears nothing of it.
    },
    240_000,
  );

  it.each([
    ["webHop1", "1.1"],
    ["webHop1", "2"],
    ["hop2", "1.1"],
  ] as const)(
    "by AttachTerminal and WriteTerminal, the links cut: %s, HTTP/%s",
    async (hop, httpVersion) => {
      const stage = await terminalStage();
      const typed = messages();
      const bytes = typed.reduce((sum, { length }) => sum + length, 0);
      const baseUrl = `http://${stage.at.webAddress}`;
      const transport =
        httpVersion === "2"
          ? createConnectTransport({ baseUrl, httpVersion, pingIntervalMs: 300, pingTimeoutMs: 300 })
          : createConnectTransport({ baseUrl, httpVersion, useBinaryFormat: false });
      const client = createClient(SessionService, transport);
      const ids = { workspaceId: stage.workspaceId, sessionId: "t" };
      await client.openTerminal({ ...ids, program: { command: "sh", args: ["-c", program(bytes)] } });
      const terminal = new BrowserTerminal(() => client, ids);
      await terminal.attached;
      expect(terminal.attachmentId, "its program has ended already").not.toBe("");
      await typeAndCut(
        stage[hop],
        typed,
        (data) => terminal.type(data),
        () => terminal.isAttached,
      );
      expect(await terminal.over).toMatchObject({ status: { case: "exitCode", value: 0 } });
      expectWhole(terminal.text, terminal.missing, typed);
      if (hop === "webHop1") expect(terminal.streams).toBeGreaterThan(cuts / 3);
      else expect(terminal.streams).toBe(1);
    },
    240_000,
  );

  it("through an agent that was stopped (SIGSTOP), its links cut meanwhile", async () => {
    const stage = await terminalStage();
    const typed = Array.from({ length: 12 }, () => randomBytes(2_000));
    const remote = remoteTerminal(stage.at.address, stage.workspaceId, program(24_000));
    await remote.attached;
    for (const [at, data] of typed.entries()) {
      if (at % 4 === 0) {
        stage.agent.child.kill("SIGSTOP");
        await remote.type(data);
        stage.hop2.cut();
        stage.agent.child.kill("SIGCONT");
      } else await remote.type(data);
    }
    expect(await remote.over).toMatchObject({ t: "exited", exit: { status: { case: "exitCode", value: 0 } } });
    expectHash(remote.text(), typed);
    expect(remote.seen).toMatchObject({ missing: 0n, unsure: 0 });
  }, 240_000);
});
