import { fromBinary } from "@bufbuild/protobuf";
import {
  AttachMode,
  AttachSessionResponseSchema,
  SessionKind,
  SessionService,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import { Deadline, systemClock } from "../../packages/async/src/index.ts";
import type { LinkClient } from "../../packages/guest-link/src/index.ts";

const callMs = 60_000;
const { openSession, attachSession, writeSession } = SessionService.method;

export async function openTerminal(link: LinkClient, sessionId: string, script: string): Promise<void> {
  using within = new Deadline(systemClock, callMs);
  const request = { sessionId, kind: SessionKind.TERMINAL, command: "sh", args: ["-c", script] };
  await link.call(openSession, request, { within });
}

export interface Echo {
  /** Milliseconds until a byte is back and acknowledged. */
  key(): Promise<number>;
}

/** A terminal whose program sends back each byte. */
export async function startEcho(link: LinkClient): Promise<Echo> {
  await openTerminal(link, "echo", "stty raw -echo; echo ready; exec cat");
  using within = new Deadline(systemClock, callMs);
  let attachmentId = "";
  let onData: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    onData = resolve;
  });
  const listener = {
    message: (payload: Buffer) => {
      const { event } = fromBinary(AttachSessionResponseSchema, payload);
      if (event.case === "attached") attachmentId = event.value.attachmentId;
    },
    data: () => onData(),
    over: () => undefined,
  };
  await link.open(attachSession, { sessionId: "echo", mode: AttachMode.EXCLUSIVE }, listener, { within });
  await ready;
  let sequence = 1n;
  return {
    async key() {
      using each = new Deadline(systemClock, callMs);
      const began = performance.now();
      const back = new Promise<void>((resolve) => {
        onData = resolve;
      });
      const request = { sessionId: "echo", attachmentId, sequence: sequence++, data: Buffer.from("x") };
      await Promise.all([back, link.call(writeSession, request, { within: each }).then(() => undefined)]);
      return performance.now() - began;
    },
  };
}
