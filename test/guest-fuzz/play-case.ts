import { fromBinary } from "@bufbuild/protobuf";
import { EndSchema, ReplySchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { AttachSessionResponseSchema } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { frameTypes } from "../../packages/guest-link/src/frame.ts";
import type { FuzzCase } from "./fuzz-case.ts";
import { RawLink, type Where } from "./raw-link.ts";
import type { Tally } from "./tally.ts";

/** Where what a case brings about is told. */
export interface Ears {
  readonly tally: Tally;
  /** How long an answer, or a close, may take. */
  readonly answerWithinMs: number;
  readonly onAttachment: (id: string) => void;
}

/** Plays one case. Resolves with what the agent did wrong; undefined: nothing. */
export async function playCase(
  where: Where,
  played: FuzzCase,
  { tally, answerWithinMs, onAttachment }: Ears,
): Promise<string | undefined> {
  const link = new RawLink(where);
  try {
    const saw = (type: number): void => tally.sawFrame(type);
    if (played.role !== "unproved" && !(await within(link.prove(played.role, saw), answerWithinMs))) {
      tally.refusedAtDoor += 1;
      return undefined; // The door may be full of strangers at the moment, and says so.
    }
    tally.played(played);
    const open = new Set(played.promised);
    const answered = Promise.withResolvers<void>();
    if (open.size === 0) answered.resolve();
    link.onFrame = ({ type, payload, callId }) => {
      saw(type);
      if (type === frameTypes.streamEnd) tally.toldForced += 1;
      if (type === frameTypes.reply) tally.answered(fromBinary(ReplySchema, payload).status?.reason ?? "");
      else if (type === frameTypes.end) tally.answered(fromBinary(EndSchema, payload).status?.reason ?? "");
      else if (type === frameTypes.message && played.kind.startsWith("stream AttachSession")) {
        const { event } = fromBinary(AttachSessionResponseSchema, payload);
        if (event.case === "attached") onAttachment(event.value.attachmentId);
      }
      if ((type === frameTypes.reply || type === frameTypes.end) && open.delete(callId) && open.size === 0) {
        answered.resolve();
      }
    };
    for (const chunk of played.chunks) if (!(await link.send(chunk))) break;
    switch (played.ending) {
      case "cut":
        return undefined;
      case "finish":
        link.socket.end();
        if (
          await within(
            link.closed.then(() => true),
            answerWithinMs,
          )
        )
          return undefined;
        return `${played.kind}: the agent kept a connection that its caller had ended`;
      case "await": {
        const done = await within(
          Promise.race([answered.promise.then(() => "answered"), link.closed.then(() => "closed")]),
          answerWithinMs,
        );
        if (open.size === 0) return undefined;
        if (done === "closed") tally.closedByAgent += 1;
        return `${played.kind}: ${done === "closed" ? "closed" : "no word"} instead of the answer to ${[...open].slice(0, 5)} (${played.methods.map((name) => name.slice(0, 80)).slice(0, 8)})`;
      }
    }
  } finally {
    link.socket.destroy();
  }
}

/** Undefined when it takes too long. */
async function within<T>(what: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([what, late]);
  } finally {
    clearTimeout(timer);
  }
}
