import { randomBytes } from "node:crypto";
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { CallSchema, EndSchema, OpenSchema, ReplySchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import {
  AttachMode,
  OpenSessionRequestSchema,
  SessionKind,
  SessionService,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import { frameTypes, type LinkPhase } from "../../packages/guest-link/src/frame.ts";
import { nameOf } from "./methods.ts";
import { type Frame, frameOf, RawLink, type Where } from "./raw-link.ts";
import type { Tally } from "./tally.ts";

const sessionId = "displaced";
const streamId = 2 ** 32 - 1;
const withinMs = 20_000;

/**
 * A reader that never reads, displaced by another: what the agent tells of that it tells on the caller's control connection, under the
 * stream's number. Resolves with what it did wrong; undefined: nothing.
 */
export async function displacedReader(where: Where, tally: Tally, epoch: bigint): Promise<string | undefined> {
  const clientId = randomBytes(16);
  const links: RawLink[] = [];
  const seen = (type: number): void => tally.sawFrame(type);
  const connect = async (
    role: "control" | "stream",
  ): Promise<{ readonly link: RawLink; next(type: number): Promise<Frame> }> => {
    const link = new RawLink(where);
    links.push(link);
    if (!(await link.prove(role, seen, clientId))) throw new Error("not welcomed");
    const came: Frame[] = [];
    let wake = (): void => undefined;
    link.onFrame = (frame) => {
      seen(frame.type);
      came.push(frame);
      wake();
    };
    const next = async (type: number): Promise<Frame> => {
      const endsAt = performance.now() + withinMs;
      for (;;) {
        const found = came.find((frame) => frame.type === type);
        if (found !== undefined) return found;
        if (performance.now() > endsAt || link.isClosed) throw new Error(`no frame of type ${type} came`);
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, 1_000).unref();
        });
      }
    };
    return { link, next };
  };
  const send = async (
    link: RawLink,
    phase: LinkPhase,
    type: number,
    payload: Uint8Array,
    callId = 0,
  ): Promise<void> => {
    seen(type);
    await link.send(frameOf(phase, type, payload, callId));
  };
  const { openSession, attachSession } = SessionService.method;
  try {
    const control = await connect("control");
    const program = { sessionId, kind: SessionKind.TERMINAL, command: "sh", args: ["-c", "seq 300000; sleep 60"] };
    const call = create(CallSchema, { ...requestOf(openSession, OpenSessionRequestSchema, program), epoch });
    await send(control.link, "control", frameTypes.call, toBinary(CallSchema, call), 1);
    const { status } = fromBinary(ReplySchema, (await control.next(frameTypes.reply)).payload);
    if (status !== undefined) return `displaced reader: its session was not opened: ${status.message}`;
    const attach = async (id: number): Promise<void> => {
      const stream = await connect("stream");
      const open = create(OpenSchema, {
        ...requestOf(attachSession, attachSession.input, { sessionId, mode: AttachMode.EXCLUSIVE }),
        epoch,
        streamId: id,
      });
      await send(stream.link, "stream", frameTypes.open, toBinary(OpenSchema, open));
      await stream.next(frameTypes.message);
      stream.link.socket.pause();
    };
    await attach(streamId);
    await attach(1);
    const told = await control.next(frameTypes.streamEnd);
    tally.toldForced += 1;
    const { reason } = fromBinary(EndSchema, told.payload).status ?? {};
    if (told.callId === streamId && reason === "ATTACHMENT_DISPLACED") return undefined;
    return `displaced reader: told of stream ${told.callId}: ${reason}`;
  } catch (error) {
    return `displaced reader: ${error}`;
  } finally {
    for (const { socket } of links) socket.destroy();
  }
}

function requestOf<T extends DescMessage>(method: DescMethod, schema: T, init: MessageInitShape<T>) {
  return { method: nameOf(method), message: toBinary(schema, create(schema, init)) };
}
