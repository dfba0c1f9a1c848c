import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { type ConnectRequestSchema, PortService } from "@holdfast/api/holdfast/v1/port_pb";
import {
  AttachMode,
  SessionKind,
  SessionService,
  type TerminalRequestSchema,
  type TerminalStartSchema,
  TerminalVerb,
} from "@holdfast/api/holdfast/v1/session_pb";
import { holderEpochFrom } from "@holdfast/contract";
import { openWish, patient, suspendWish, workspaceId } from "@holdfast/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { canHoldPrograms, heldProgram } from "../../services/guest-agent/src/testing/held-program.testing.ts";
import { BrowserTerminal } from "./browser-terminal.ts";
import { terminalStage } from "./terminal-stage.ts";
import { clientsBy, collect, failureOf, ways } from "./ways.ts";

type Request = MessageInitShape<typeof TerminalRequestSchema>;

const textOf = (pieces: readonly Uint8Array[]): string => Buffer.concat(pieces).toString("latin1");
const input = (text: string): Request => ({ request: { case: "input", value: Buffer.from(text) } });
const startOf = (value: MessageInitShape<typeof TerminalStartSchema>): Request => ({
  request: { case: "start", value },
});
const echoing = { command: "sh", args: ["-c", "stty -echo; echo up; while read -r x; do echo got:$x; done; exit 3"] };

/** A terminal on one stream, whose requests a test sends one by one. */
class Stream {
  readonly events: { case?: string | undefined; value?: unknown }[] = [];
  readonly over: Promise<Awaited<ReturnType<typeof failureOf>> | undefined>;
  text = "";
  typed = 0n;
  attachmentId = "";
  readonly #requests: Request[] = [];
  readonly #end = new AbortController();
  #halfClosed = false;
  #wake = (): void => undefined;
  readonly #waiting = new Set<() => void>();

  constructor(client: ReturnType<typeof createClient<typeof SessionService>>, ...requests: Request[]) {
    this.#requests.push(...requests);
    this.over = this.#read(client).then(
      () => undefined,
      (error: unknown) => failureOf(Promise.reject(error)),
    );
    void this.over.then(() => this.#told());
  }

  send(request: Request): void {
    this.#requests.push(request);
    this.#wake();
  }

  halfClose(): void {
    this.#halfClosed = true;
    this.#wake();
  }

  /** The client goes away. */
  cancel(): void {
    this.#end.abort();
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  async *#sent(): AsyncGenerator<Request> {
    for (;;) {
      for (let next = this.#requests.shift(); next; next = this.#requests.shift()) yield next;
      if (this.#halfClosed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #read(client: ReturnType<typeof createClient<typeof SessionService>>): Promise<void> {
    for await (const { event } of client.terminal(this.#sent(), { signal: this.#end.signal })) {
      this.events.push(event);
      if (event.case === "data") this.text += Buffer.from(event.value.data).toString("latin1");
      if (event.case === "typed") this.typed = event.value.nextInputSequence;
      if (event.case === "attached") this.attachmentId = event.value.attachmentId;
      this.#told();
    }
  }

  #told(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

const canHold = await canHoldPrograms();

async function sessionsStage() {
  const stage = await terminalStage();
  const client = createClient(SessionService, createGrpcTransport({ baseUrl: `http://${stage.listeners.address}` }));
  const begin = (more: MessageInitShape<typeof TerminalStartSchema>): Request =>
    startOf({
      workspaceId: stage.workspaceId,
      sessionId: "t",
      ...(more.verb === TerminalVerb.ATTACH ? {} : { program: echoing }),
      ...more,
    } as typeof more);
  const at = { workspaceId: stage.workspaceId, sessionId: "t" };
  return { ...stage, client, begin, at };
}

describe("terminals, by every way of calling", () => {
  it.each(ways)("$name: opens, follows, types, resizes, reads, lists and kills", async (way) => {
    const stage = await terminalStage();
    using clients = clientsBy(way, stage.at);
    const { sessions } = clients;
    const at = { workspaceId: stage.workspaceId, sessionId: "t" };
    const opened = await sessions.openTerminal({ ...at, program: { ...echoing, size: { columns: 90, rows: 20 } } });
    expect(opened.session).toMatchObject({
      sessionId: "t",
      kind: SessionKind.TERMINAL,
      size: { columns: 90, rows: 20 },
    });
    const terminal = new BrowserTerminal(() => sessions, at);
    await terminal.until(() => terminal.text.includes("up"));
    expect(terminal.bootId).toBe(opened.bootId);
    await terminal.type(Buffer.from("hello\n"));
    await terminal.until(() => terminal.text.includes("got:hello"));
    await sessions.resizeTerminal({ ...at, size: { columns: 5, rows: 6 }, attachmentId: terminal.attachmentId });
    const { sessions: rows, bootId } = await sessions.listSessions({ workspaceId: stage.workspaceId });
    expect(rows).toMatchObject([{ sessionId: "t", attached: true, size: { columns: 5, rows: 6 } }]);
    expect(bootId).toBe(opened.bootId);
    const read = await sessions.readSession({ ...at, fromOffset: 1n, maxBytes: 1 });
    expect(read).toMatchObject({ offset: 1n, nextOffset: 2n });
    expect(Buffer.from(read.data).toString()).toBe("p");
    const killed = await sessions.killSession(at);
    expect(killed.session?.exit?.status).toEqual({ case: "signal", value: "SIGKILL" });
    expect(await terminal.over).toMatchObject({ status: { case: "signal", value: "SIGKILL" } });
    expect((await sessions.killSession(at)).session?.exit).toEqual(killed.session?.exit);
  });

  it.each(ways.filter(({ bidi }) => bidi))("$name: on one stream, input confirmed, to its exit", async (way) => {
    const stage = await terminalStage();
    using clients = clientsBy(way, stage.at);
    const stream = new Stream(
      clients.sessions,
      startOf({ workspaceId: stage.workspaceId, program: echoing, size: { columns: 70, rows: 10 } }),
      input("one\n"),
    );
    await stream.until(() => stream.text.includes("got:one"));
    await stream.until(() => stream.typed === 2n);
    stream.send({ request: { case: "resize", value: { columns: 71, rows: 11 } } });
    stream.send(input("two\n"));
    await stream.until(() => stream.text.includes("got:two") && stream.typed === 3n);
    stream.send(input("\x04"));
    stream.halfClose();
    expect(await stream.over).toBeUndefined();
    expect(stream.events[0]).toMatchObject({ case: "attached", value: { nextInputSequence: 1n } });
    expect(stream.events.at(-1)).toMatchObject({
      case: "exited",
      value: { exit: { status: { case: "exitCode", value: 3 } } },
    });
    const { sessions } = await clients.sessions.listSessions({ workspaceId: stage.workspaceId });
    expect(sessions).toMatchObject([{ size: { columns: 71, rows: 11 } }]);
  });
});

describe("how a terminal's stream begins", () => {
  it("opens what is new, and joins what runs; each by its name only where it is so", async () => {
    const { client, begin, at } = await sessionsStage();
    const absent = new Stream(client, startOf({ ...at, verb: TerminalVerb.ATTACH }));
    expect(await absent.over).toMatchObject({ reason: "SESSION_NOT_FOUND" });
    const first = new Stream(client, begin({ verb: TerminalVerb.OPEN_OR_ATTACH }), input("1\n"));
    await first.until(() => first.text.includes("got:1"));
    const again = new Stream(client, begin({ verb: TerminalVerb.OPEN }));
    expect(await again.over).toMatchObject({ reason: "SESSION_EXISTS", code: "AlreadyExists" });
    const second = new Stream(client, begin({}), input("2\n"));
    await second.until(() => second.text.includes("got:2"));
    expect(second.text).toContain("got:1"); // The same program, from its beginning.
    expect(await first.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED", metadata: { by: second.attachmentId } });
  });

  it("B32 never opens a new one in the place of one that was seen before, nor after the agent's restart", async () => {
    const { client, begin, at } = await sessionsStage();
    const reasons: unknown[] = [];
    for (const seen of [{ fromOffset: 5n }, { expectedBootId: "former" }, { attachmentId: "former" }]) {
      reasons.push((await new Stream(client, begin(seen)).over)?.reason);
    }
    expect(reasons).toEqual(["SESSION_NOT_FOUND", "GUEST_RESTARTED", "SESSION_NOT_FOUND"]);
    expect((await client.listSessions({ workspaceId: at.workspaceId })).sessions).toEqual([]);
  });

  it("refuses what cannot be meant together, all of it at once", async () => {
    const { client, at } = await sessionsStage();
    const wrong = (value: MessageInitShape<typeof TerminalStartSchema>) =>
      new Stream(client, startOf({ ...at, ...value })).over;
    expect(await wrong({ verb: TerminalVerb.ATTACH, persistent: false, program: echoing })).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: ["start.program", "start.persistent"],
    });
    expect(await wrong({ verb: TerminalVerb.OPEN, fromOffset: 3n, attachmentId: "a" })).toMatchObject({
      violations: ["start.from_offset", "start.attachment_id"],
    });
    expect(await wrong({ mode: AttachMode.OBSERVE })).toMatchObject({ violations: ["start.mode"] });
    const twice = new Stream(client, startOf(at), startOf(at));
    expect(await twice.over).toMatchObject({ reason: "INVALID_REQUEST" });
    const late = new Stream(client, input("x"));
    expect(await late.over).toMatchObject({ reason: "INVALID_REQUEST", violations: ["start"] });
  });
});

describe("how an attachment ends", () => {
  it("L44 G19 outlives a client that goes away, and its program with it; `detach` ends it well and lets it go", async () => {
    const { client, begin, at } = await sessionsStage();
    const first = new Stream(client, begin({}), input("1\n"));
    await first.until(() => first.text.includes("got:1") && first.typed === 2n);
    first.cancel();
    await first.over;
    const again = new Stream(
      client,
      startOf({
        ...at,
        verb: TerminalVerb.ATTACH,
        attachmentId: first.attachmentId,
        fromOffset: BigInt(first.text.length),
      }),
      input("2\n"),
    );
    await again.until(() => again.text.includes("got:2"));
    expect(again.attachmentId).toBe(first.attachmentId);
    expect(again.events[0]).toMatchObject({ case: "attached", value: { nextInputSequence: 2n } });
    expect(again.text).not.toContain("got:1");
    again.send({ request: { case: "detach", value: {} } });
    expect(await again.over).toBeUndefined();
    const late = client.writeTerminal({
      ...at,
      attachmentId: again.attachmentId,
      sequence: 4n,
      data: Buffer.from("3\n"),
    });
    expect(await failureOf(late)).toMatchObject({ reason: "ATTACHMENT_NOT_FOUND" });
    const [row] = (await client.listSessions({ workspaceId: at.workspaceId })).sessions;
    expect(row).toMatchObject({ sessionId: "t", attached: false });
    expect(row?.exit).toBeUndefined();
  });

  it.each(ways.filter(({ bidi }) => bidi))(
    "$name: L44 a program that is not persistent ends with its client",
    async (way) => {
      const stage = await sessionsStage();
      const { client, begin, at } = stage;
      using clients = clientsBy(way, { address: stage.listeners.address, webAddress: stage.listeners.webAddress });
      const stream = new Stream(clients.sessions, begin({ persistent: false }));
      await stream.until(() => stream.text.includes("up"));
      stream.cancel();
      await stream.over;
      await expect
        .poll(async () => (await client.listSessions({ workspaceId: at.workspaceId })).sessions[0]?.exit?.status.case)
        .toBe("signal");
    },
  );

  describe.runIf(canHold)("while the kernel does not begin its program (skipped where it gives no leases)", () => {
    it.each([TerminalVerb.OPEN, TerminalVerb.OPEN_OR_ATTACH])(
      "L44 a program that is not persistent ends as soon as it runs when its client has gone meanwhile (verb %s)",
      async (verb) => {
        const { client, begin, at, agent } = await sessionsStage();
        const held = await heldProgram(`echo ran > ${agent.root}/ran; exec sleep 300`);
        const stream = new Stream(client, begin({ verb, persistent: false, program: { command: held.path } }));
        await held.reached;
        stream.cancel();
        await stream.over;
        held.release();
        const { workspaceId } = at;
        // Within seconds: nobody attended to it for 60 s is another rule.
        await expect
          .poll(async () => (await client.listSessions({ workspaceId })).sessions[0]?.exit?.status.case, {
            timeout: 5_000,
          })
          .toBe("signal");
      },
    );

    it("L44 a persistent one is begun, and goes on", async () => {
      const { client, begin, at } = await sessionsStage();
      const held = await heldProgram("echo up; read -r x");
      const stream = new Stream(client, begin({ program: { command: held.path } }));
      await held.reached;
      stream.cancel();
      await stream.over;
      held.release();
      const next = new Stream(client, startOf({ ...at, verb: TerminalVerb.ATTACH }));
      await next.until(() => next.text.includes("up") || next.events.some((event) => event.case === "exited"));
      expect(next.text).toContain("up");
      next.cancel();
      await next.over;
    });
  });

  it("L44 a take-over ends no program, also not one that is bound to its client, whose input it refuses", async () => {
    const { client, begin, at, registry } = await sessionsStage();
    const held = (epoch: number) => ({ ...openWish, fencing: { t: "epoch" as const, epoch: holderEpochFrom(epoch) } });
    await registry.open(workspaceId(at.workspaceId), held(1), patient);
    const stream = new Stream(client, begin({ persistent: false, epoch: 1n }));
    await stream.until(() => stream.text.includes("up"));
    await registry.open(workspaceId(at.workspaceId), held(2), patient);
    stream.send(input("1\n"));
    expect(await stream.over).toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    const follow = startOf({ ...at, verb: TerminalVerb.ATTACH, epoch: 2n });
    const next = new Stream(client, follow, input("2\n"));
    await next.until(() => next.text.includes("got:2") || next.events.some((event) => event.case === "exited"));
    expect(next.text).toContain("got:2");
    expect(next.text).not.toContain("got:1");
    next.cancel();
    await next.over;
  });

  it("L44 a request whose answer is lost ends the stream, and not a program that is bound to its client", async () => {
    const { client, begin, at, hop2 } = await sessionsStage();
    const stream = new Stream(client, begin({ persistent: false }));
    await stream.until(() => stream.text.includes("up"));
    const { swallowed } = hop2.swallow("back");
    stream.send({ request: { case: "signal", value: "WINCH" } });
    await swallowed;
    hop2.cut();
    expect(await stream.over).toMatchObject({ reason: "SESSION_DETACHED" });
    const next = new Stream(client, startOf({ ...at, verb: TerminalVerb.ATTACH }), input("2\n"));
    await next.until(() => next.text.includes("got:2") || next.events.some((event) => event.case === "exited"));
    expect(next.text).toContain("got:2");
    next.cancel();
    await next.over;
  });

  it("B90 is told why by name: displaced, suspended, and drained with where to go on", async () => {
    const { client, at, listeners } = await sessionsStage();
    await client.openTerminal({ ...at, program: echoing });
    const follow = () => collect(client.attachTerminal(at));
    const attachedAs = async () =>
      expect
        .poll(async () => (await client.listSessions({ workspaceId: at.workspaceId })).sessions[0]?.attached)
        .toBe(true);
    const displaced = follow();
    await attachedAs();
    const terminal = new BrowserTerminal(() => client, at);
    await terminal.until(() => terminal.text.includes("up"));
    expect((await displaced).failure).toMatchObject({
      reason: "ATTACHMENT_DISPLACED",
      metadata: { last_sequence: "0" },
    });
    const kept = await terminal.reload();
    const drained = collect(client.attachTerminal({ ...at, fromOffset: kept.offset, attachmentId: kept.attachmentId }));
    await attachedAs();
    void listeners.admission.drain();
    expect((await drained).failure).toMatchObject({
      reason: "SERVICE_DRAINING",
      code: "Unavailable",
      metadata: {
        session_id: "t",
        offset: String(kept.offset),
        attachment_id: kept.attachmentId,
        boot_id: kept.bootId,
      },
    });
  });

  it("L44 a drain claims nothing that was not confirmed, and says of a bound program what becomes of it", async () => {
    const { client, begin, at, listeners, hop2 } = await sessionsStage();
    const bound = new Stream(client, begin({ persistent: false }));
    await bound.until(() => bound.text.includes("up"));
    const { swallowed } = hop2.swallow("back");
    const opening = new Stream(client, begin({ sessionId: "new", verb: TerminalVerb.OPEN }));
    await swallowed;
    const kill = failureOf(client.killSession({ ...at, signal: "HUP" }));
    await expect.poll(() => listeners.admission.inProgress).toBe(3);
    void listeners.admission.drain();
    expect(await opening.over).toMatchObject({
      reason: "SESSION_OUTCOME_UNKNOWN",
      metadata: { session_id: "new", why: "service_draining" },
    });
    expect(await bound.over).toMatchObject({
      reason: "SERVICE_DRAINING",
      message: expect.stringContaining("bound to its client"),
    });
    listeners.admission.endUnary();
    expect(await kill).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED", metadata: { why: "service_draining" } });
    hop2.cut();
  });

  it("L25 L29 a suspend lets it go with WORKSPACE_SUSPENDED, before the pod goes", async () => {
    const { client, at, registry } = await sessionsStage();
    await client.openTerminal({ ...at, program: echoing });
    const following = collect(client.attachTerminal(at));
    await expect
      .poll(async () => (await client.listSessions({ workspaceId: at.workspaceId })).sessions[0]?.attached)
      .toBe(true);
    const id = workspaceId(at.workspaceId);
    await registry.suspend(id, { ...suspendWish, flush: { enabled: false, timeoutMs: 1_000 } }, patient);
    const { messages, failure } = await following;
    expect(failure).toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "RELEASED", operation: "AttachTerminal" },
    });
    expect(messages.map(({ event }) => event.case)).not.toContain("exited");
    expect(await failureOf(client.readSession(at))).toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    await registry.resume(id, { readyTimeoutMs: openWish.readyTimeoutMs }, patient);
  });

  it("observers look on without typing, displace nobody, and are displaced by nobody", async () => {
    const { client, begin, at } = await sessionsStage();
    const owner = new Stream(client, begin({}));
    await owner.until(() => owner.text.includes("up"));
    const watching = startOf({ ...at, verb: TerminalVerb.ATTACH, mode: AttachMode.OBSERVE });
    const observer = new Stream(client, watching);
    owner.send(input("x\n"));
    await observer.until(() => observer.text.includes("got:x"));
    observer.send(input("y\n"));
    expect(await observer.over).toMatchObject({ reason: "INVALID_REQUEST" });
    owner.send(input("z\n"));
    await owner.until(() => owner.text.includes("got:z"));
    expect(owner.text).not.toContain("got:y");
  });
});

describe("input", () => {
  it("G19 each sequence is written once through any replica, ahead of its turn or repeated", async () => {
    const { services, at } = await (async () => {
      const stage = await terminalStage(2);
      return { ...stage, at: { workspaceId: stage.workspaceId, sessionId: "t" } };
    })();
    const [one, two] = services.map(({ listeners }) =>
      createClient(SessionService, createGrpcTransport({ baseUrl: `http://${listeners.address}` })),
    );
    if (!one || !two) throw new Error("two replicas");
    await one.openTerminal({ ...at, program: echoing });
    const terminal = new BrowserTerminal(() => one, at);
    await terminal.until(() => terminal.text.includes("up"));
    const { attachmentId } = terminal;
    const write = (client: typeof one, sequence: bigint, text: string) =>
      client.writeTerminal({ ...at, attachmentId, sequence, data: Buffer.from(text) });
    const ahead = write(two, 2n, "b\n");
    expect((await write(one, 1n, "a\n")).nextInputSequence).toBeGreaterThanOrEqual(2n);
    expect((await ahead).nextInputSequence).toBe(3n);
    expect((await write(two, 1n, "a\n")).nextInputSequence).toBe(3n);
    await write(two, 3n, "\x04");
    expect(await terminal.over).toMatchObject({ status: { case: "exitCode", value: 3 } });
    expect(terminal.text).toBe("up\r\ngot:a\r\ngot:b\r\n");
    const far = failureOf(write(one, 9n, "z\n"));
    expect((await far).reason).toBe("ATTACHMENT_NOT_FOUND");
  });

  it("says which sequence comes next where one never came", async () => {
    const { client, at } = await sessionsStage();
    await client.openTerminal({ ...at, program: echoing });
    const terminal = new BrowserTerminal(() => client, at);
    await terminal.attached;
    const early = client.writeTerminal({
      ...at,
      attachmentId: terminal.attachmentId,
      sequence: 5n,
      data: Buffer.from("x"),
    });
    expect(await failureOf(early)).toMatchObject({
      reason: "INPUT_OUT_OF_ORDER",
      code: "OutOfRange",
      metadata: { expected: "1" },
    });
  });

  it("a signal reaches a program that reads nothing, though its terminal is full; its client is held back meanwhile", async () => {
    const { client, begin } = await sessionsStage();
    const stream = new Stream(
      client,
      begin({ program: { command: "sh", args: ["-c", "stty raw -echo; echo up; exec sleep 1000"] } }),
    );
    await stream.until(() => stream.text.includes("up"));
    for (let at = 0; at < 3; at += 1) stream.send({ request: { case: "input", value: Buffer.alloc(16_000, 120) } });
    stream.send({ request: { case: "signal", value: "TERM" } });
    expect(await stream.over).toBeUndefined();
    expect(stream.events.at(-1)).toMatchObject({
      case: "exited",
      value: { exit: { status: { case: "signal", value: "SIGTERM" } } },
    });
    expect(stream.typed).toBe(0n);
  });
});

describe("detached programs", () => {
  it("B36 run without a client, and are read by offset; a read waits for more, and for the end", async () => {
    const { client, at } = await sessionsStage();
    const script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 4";
    const started = await client.startDetached({ ...at, command: "sh", args: ["-c", script] });
    expect(started.session).toMatchObject({ kind: SessionKind.DETACHED });
    expect(started.bootId).not.toBe("");
    const wait = { seconds: 30n, nanos: 0 };
    const first = await client.readSession({ ...at, wait });
    expect(Buffer.from(first.data).toString()).toBe("one\n");
    const waiting = client.readSession({ ...at, fromOffset: first.nextOffset, wait });
    await client.startDetached({ workspaceId: at.workspaceId, command: "touch", args: ["go"] });
    expect(Buffer.from((await waiting).data).toString()).toBe("two\n");
    await expect
      .poll(async () => (await client.readSession({ ...at, fromOffset: 8n })).session?.exit?.status)
      .toEqual({ case: "exitCode", value: 4 });
    expect(await failureOf(client.readSession({ ...at, fromOffset: 9n }))).toMatchObject({
      reason: "OFFSET_OUT_OF_RANGE",
    });
  });
});

describe("ports", () => {
  type ToPort = MessageInitShape<typeof ConnectRequestSchema>;

  /** A server on the guest's loopback. */
  async function serve(each: (socket: Socket) => void): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => undefined);
      each(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  const transports = [
    ["gRPC", (at: { address: string; webAddress: string }) => createGrpcTransport({ baseUrl: `http://${at.address}` })],
    [
      "Connect, HTTP/2",
      (at: { address: string; webAddress: string }) =>
        createConnectTransport({ baseUrl: `http://${at.webAddress}`, httpVersion: "2" }),
    ],
  ] as const;

  it.each(transports)(
    "B67 %s: each side is closed by itself, and nothing is lost in either direction",
    async (_, open) => {
      const stage = await terminalStage();
      const { connect } = createClient(PortService, open(stage.at));
      const reply = Buffer.alloc(5_000_000, "reply");
      const port = await serve((socket) => {
        let received = 0;
        socket.on("data", (data) => {
          received += data.length;
        });
        // Only once the client has said all: then all that it is told is how much that was, and much more.
        socket.on("end", () => socket.write(`${received}\n`, () => socket.end(reply)));
      });
      const requests = async function* (): AsyncGenerator<ToPort> {
        yield { request: { case: "start", value: { workspaceId: stage.workspaceId, port } } };
        for (let at = 0; at < 20; at += 1) yield { request: { case: "data", value: Buffer.alloc(50_000) } };
      };
      const { messages, failure } = await collect(connect(requests()));
      expect(failure).toBeUndefined();
      expect(messages[0]?.event.case).toBe("connected");
      expect(messages.at(-1)?.event.case).toBe("closed");
      const pieces = messages.flatMap(({ event }) => (event.case === "data" ? [event.value] : []));
      expect(textOf(pieces)).toBe(`1000000\n${reply.toString("latin1")}`);
    },
  );

  it("B67 the mirror: the server says all and closes, and is still heard out by its client", async () => {
    const stage = await terminalStage();
    const { connect } = createClient(PortService, createGrpcTransport({ baseUrl: `http://${stage.at.address}` }));
    const heard = Promise.withResolvers<number>();
    const port = await serve((socket) => {
      let received = 0;
      socket.end("first");
      socket.on("data", (data) => {
        received += data.length;
      });
      socket.on("end", () => heard.resolve(received));
    });
    const closed = Promise.withResolvers<void>();
    const requests = async function* (): AsyncGenerator<ToPort> {
      yield { request: { case: "start", value: { workspaceId: stage.workspaceId, port } } };
      await closed.promise;
      for (let at = 0; at < 20; at += 1) yield { request: { case: "data", value: Buffer.alloc(50_000) } };
    };
    for await (const { event } of connect(requests())) if (event.case === "closed") closed.resolve();
    expect(await heard.promise).toBe(1_000_000);
  });

  it("B67 a reset is an error with its name, never an end; a port where nobody listens is refused", async () => {
    const stage = await terminalStage();
    const { connect } = createClient(PortService, createGrpcTransport({ baseUrl: `http://${stage.at.address}` }));
    const port = await serve((socket) =>
      socket.once("data", () => socket.write("half", () => socket.resetAndDestroy())),
    );
    const idle = async function* (to: number): AsyncGenerator<ToPort> {
      yield { request: { case: "start", value: { workspaceId: stage.workspaceId, port: to } } };
      yield { request: { case: "data", value: Buffer.from("x") } };
      await new Promise(() => undefined);
    };
    const { failure } = await collect(connect(idle(port)));
    expect(failure?.reason).toBe("PORT_RESET");

    expect((await collect(connect(idle(stage.agent.address.port)))).failure).toMatchObject({ reason: "PORT_REFUSED" });

    const cut = await serve((socket) => socket.write("stays"));
    const lost = (async () => {
      // Once something was delivered it stands, and goes nowhere else.
      for await (const { event } of connect(idle(cut))) if (event.case === "data") stage.hop2.cut();
    })();
    expect(await failureOf(lost)).toMatchObject({ reason: "PORT_RESET", metadata: { cause: "link_lost" } });
  });
});
