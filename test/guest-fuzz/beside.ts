import { createServer, type Server } from "node:net";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { DiskService } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { PortService } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { AnsweredError, LinkClient } from "@holdfast/guest-link";
import { type CommandOutcome, runCommand, sendStream } from "./link-streams.ts";
import type { Random } from "./random.ts";
import type { Where } from "./raw-link.ts";
import type { Tally } from "./tally.ts";

/** Refusals that the fuzzer brings about by what it may rightly do: raise the epoch, quiesce, use up a limit, remove a file. */
const excused = new Set([
  "HOLDER_EPOCH_SUPERSEDED",
  "HOLDER_EPOCH_NOT_TAKEN",
  "HOLDER_EPOCH_REQUIRED",
  "AGENT_RETIRING",
  "STREAM_CAPACITY",
  "EXECUTION_CAPACITY",
]);
const quiesceShadowMs = 30_000;

/** A client that keeps to the rules while others do not: what it asks for must be right. */
export class Beside {
  readonly #link: LinkClient;
  readonly #random: Random;
  readonly #tally: Tally;
  readonly #echo: Server;
  readonly echoPort: number;
  readonly wrong: string[] = [];
  readonly done = { commands: 0, tunnels: 0, files: 0, excused: 0 };
  epoch = 0n;
  slowestHealthMs = 0;
  #next = 0;

  private constructor(where: Where, random: Random, tally: Tally, echo: Server, echoPort: number) {
    this.#link = new LinkClient(where, systemClock);
    this.#random = random;
    this.#tally = tally;
    this.#echo = echo;
    this.echoPort = echoPort;
  }

  static async open(where: Where, random: Random, tally: Tally): Promise<Beside> {
    const echo = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => undefined);
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    const address = echo.address();
    if (typeof address !== "object" || address === null) throw new Error("no address");
    return new Beside(where, random, tally, echo, address.port);
  }

  /** Asks for the agent's health, and lets a hold go that a case has left. */
  async health(withinMs: number): Promise<{ readonly bootId: string }> {
    const began = performance.now();
    using within = new Deadline(systemClock, withinMs);
    const health = await this.#link.call(AgentService.method.health, {}, { within });
    this.slowestHealthMs = Math.max(this.slowestHealthMs, performance.now() - began);
    this.epoch = health.holderEpoch;
    if (health.quiet) await this.#excusing("release", () => this.#release());
    return health;
  }

  /** One round of everything. */
  async round(): Promise<void> {
    await this.#excusing("commands", () => this.#command());
    await this.#excusing("tunnels", () => this.#tunnel());
    await this.#excusing("files", () => this.#file());
  }

  /** Ends all that still runs, as far as the guest knows of it. */
  async endAll(): Promise<void> {
    using within = new Deadline(systemClock, 60_000);
    const options = { within, epoch: this.epoch };
    const { executions } = await this.#link.call(ExecutionService.method.listExecutions, {}, options);
    const running = executions.filter(({ exited }) => exited === undefined);
    for (const { executionId } of running) {
      await this.#link.call(ExecutionService.method.cancelExecution, { executionId }, options);
    }
    const { quiesce } = DiskService.method;
    await this.#link.call(quiesce, { grace: { seconds: 0n, nanos: 50_000_000 } }, options);
  }

  close(): void {
    this.#link.close();
    this.#echo.close();
  }

  async #release(): Promise<undefined> {
    using within = new Deadline(systemClock, 10_000);
    await this.#link.call(DiskService.method.releaseQuiesce, {}, { within, epoch: this.epoch });
    return undefined;
  }

  async #excusing(
    what: "commands" | "tunnels" | "files" | "release",
    run: () => Promise<string | undefined>,
  ): Promise<void> {
    const began = performance.now();
    try {
      const wrong = await run();
      if (typeof wrong === "string") {
        const inShadow = began - this.#tally.lastQuiesceAtMs < quiesceShadowMs || this.#tally.lastQuiesceAtMs > began;
        if (wrong.startsWith("ended by") && inShadow) this.done.excused += 1;
        else this.wrong.push(`${what}: ${wrong}`);
      } else if (what !== "release") this.done[what] += 1;
    } catch (error) {
      if (error instanceof AnsweredError && excused.has(error.reason)) this.done.excused += 1;
      else this.wrong.push(`${what}: ${error}`);
    }
  }

  async #command(): Promise<string | undefined> {
    const lines = 1 + this.#random.whole(4_000);
    const executionId = `beside-${this.#next++}`;
    const command = { command: "seq", args: [String(lines)] };
    const outcome: CommandOutcome = await runCommand(this.#link, { executionId, command }, this.epoch);
    if (outcome.end !== "code 0") return `ended by ${outcome.end}`;
    const right = Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join("");
    return outcome.output.toString() === right ? undefined : `seq ${lines} came as ${outcome.output.length} bytes`;
  }

  async #tunnel(): Promise<string | undefined> {
    const sent = this.#random.bytes(this.#random.whole(200_000));
    const request = { port: this.echoPort };
    const { data } = await sendStream(this.#link, PortService.method.connect, request, sent, this.epoch);
    return data.equals(sent) ? undefined : `${sent.length} bytes came back as ${data.length} others`;
  }

  async #file(): Promise<string | undefined> {
    const sent = this.#random.bytes(this.#random.whole(200_000));
    const path = "beside.kept/file";
    await sendStream(this.#link, FileService.method.write, { path, makeParents: true }, sent, this.epoch);
    const { data } = await sendStream(this.#link, FileService.method.read, { path }, undefined, this.epoch);
    return data.equals(sent) ? undefined : `a file of ${sent.length} bytes came as ${data.length} others`;
  }
}
