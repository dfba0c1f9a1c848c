import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { type CallerStream, type GuestLink, LinkLost, type StreamListener } from "@holdfast/guest-link";

/** A stream as it was opened. */
export interface Opened {
  readonly method: string;
  /** A message of the method's input. */
  readonly request: Readonly<Record<string, unknown>>;
  /** What the guest sends is put in here. */
  readonly listener: StreamListener;
  /** How it was ended from this side, in order. */
  readonly ended: { readonly clientClosed: boolean }[];
  /** What was sent upwards: bytes, and "eof". */
  readonly sent: (Uint8Array | "eof")[];
  /** "pause" and "resume", in order. */
  readonly asked: string[];
  /** False: the guest does not keep up. */
  takes: boolean;
  /** Lets a sender that waits go on. */
  readonly drained: PromiseWithResolvers<void>;
}

export interface Called {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** A link to a guest that behaves as the test says. It is the network's other end and nothing more. */
export class ScriptedLink {
  readonly opened: Opened[] = [];
  readonly called: Called[] = [];
  /** What the guest does with a stream; a rejection is of the opening. */
  onOpen: (opened: Opened, nth: number) => void | Promise<void> = () => undefined;
  /** The response, or what it rejects with. */
  onCall: (called: Called, nth: number) => object | Promise<object> = () => ({});

  readonly link: GuestLink = {
    open: async (method, request, listener) => {
      const opened: Opened = {
        method: method.name,
        request: plain(method.input, request),
        listener,
        ended: [],
        sent: [],
        asked: [],
        takes: true,
        drained: Promise.withResolvers(),
      };
      this.opened.push(opened);
      const stream = streamOf(opened);
      await this.onOpen(opened, this.opened.length);
      return stream;
    },
    call: async (method, request) => {
      const called = { method: method.name, request: plain(method.input, request) };
      this.called.push(called);
      const response = await this.onCall(called, this.called.length);
      return create(method.output, response as never) as MessageShape<typeof method.output>;
    },
  };
}

/** The connection of a stream is lost. */
export const lost = (cause?: unknown): LinkLost => new LinkLost("lost by the test", cause);

function plain(schema: DescMessage, request: unknown): Readonly<Record<string, unknown>> {
  return create(schema, request as never) as unknown as Readonly<Record<string, unknown>>;
}

function streamOf(opened: Opened): CallerStream {
  const stream: Pick<
    CallerStream,
    "bootId" | "features" | "end" | "pause" | "resume" | "sendData" | "sendEof" | "drained"
  > = {
    bootId: "boot-1",
    features: [],
    end: (wish) => void opened.ended.push(wish),
    pause: () => void opened.asked.push("pause"),
    resume: () => void opened.asked.push("resume"),
    sendData: (bytes) => {
      opened.sent.push(bytes);
      return opened.takes;
    },
    sendEof: () => void opened.sent.push("eof"),
    drained: () => opened.drained.promise,
  };
  return stream as CallerStream;
}
