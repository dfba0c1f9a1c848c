import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type {
  ExecuteInteractiveRequestSchema,
  ExecutionExited,
  ExecutionService,
  ExecutionStarted,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { type Failure, failureOf } from "./ways.ts";

type Request = MessageInitShape<typeof ExecuteInteractiveRequestSchema>;
type Start = Extract<NonNullable<Request["request"]>, { case: "start" }>["value"];
type Events = AsyncIterable<{ readonly event: { readonly case?: string | undefined; readonly value?: unknown } }>;

/** Everything that a command's stream delivered, checked to be one unbroken sequence. */
export class Heard {
  started: ExecutionStarted | undefined;
  exited: ExecutionExited | undefined;
  text = "";
  missing = 0;
  next: bigint;
  messages = 0;
  readonly #waiting = new Set<() => void>();

  constructor(from = 0n) {
    this.next = from;
  }

  /** Reads to the end; what it fails with. */
  async all(events: Events, each: () => unknown = () => undefined): Promise<Failure | undefined> {
    try {
      for await (const { event } of events) {
        this.#take(event as never);
        for (const look of this.#waiting) look();
        await each();
      }
      return undefined;
    } catch (error) {
      return await failureOf(Promise.reject(error));
    }
  }

  /** Resolves once it holds. */
  until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = (): void => {
        if (!holds()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
  }

  #take(
    event:
      | { case: "started"; value: ExecutionStarted }
      | { case: "output"; value: { offset: bigint; data: Uint8Array } }
      | { case: "gap"; value: { from: bigint; to: bigint } }
      | { case: "exited"; value: ExecutionExited },
  ): void {
    this.messages += 1;
    if (event.case === "started") this.started = event.value;
    else if (event.case === "exited") this.exited = event.value;
    else {
      const from = event.case === "output" ? event.value.offset : event.value.from;
      if (from !== this.next) throw new Error(`${event.case} at ${from}, expected ${this.next}`);
      if (event.case === "gap") {
        this.missing += Number(event.value.to - event.value.from);
        this.next = event.value.to;
      } else {
        this.text += Buffer.from(event.value.data).toString("latin1");
        this.next += BigInt(event.value.data.length);
      }
    }
  }
}

/** An interactive command as a test drives it. */
export function interactive(
  executions: Client<typeof ExecutionService>,
  start: Start,
  options: { signal?: AbortSignal; slow?: () => Promise<void> } = {},
) {
  const waiting: Request[] = [{ request: { case: "start", value: start } }];
  let wake = Promise.withResolvers<void>();
  let isOver = false;
  let pulled = 0;
  const requests = (async function* () {
    for (;;) {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        pulled += 1;
        yield next;
      }
      if (isOver) return;
      await wake.promise;
      wake = Promise.withResolvers();
    }
  })();
  const send = (request: Request["request"]): void => {
    waiting.push(request === undefined ? {} : { request });
    wake.resolve();
  };
  const heard = new Heard();
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const over = heard.all(executions.executeInteractive(requests, signal), options.slow);
  return {
    heard,
    /** Resolves at the stream's end, with what it failed with. */
    over,
    /** Requests that the client's library has taken. */
    pulled: () => pulled,
    send,
    type: (data: string | Uint8Array) => send({ case: "stdin", value: Buffer.from(data) }),
    endInput: () => send({ case: "stdinEnd", value: {} }),
    signal: (name: string) => send({ case: "signal", value: name }),
    detach: () => send({ case: "detach", value: {} }),
    halfClose() {
      isOver = true;
      wake.resolve();
    },
  };
}
