import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AttachMode,
  type AttachSessionRequest,
  type ReadSessionRequest,
  type ReadSessionResponseSchema,
  SessionService,
  type SignalSessionRequest,
  type WriteSessionRequest,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import { type Clock, Deadline } from "@holdfast/async";
import {
  type SessionId,
  sessionInputMaxBytes,
  sessionKillAnswerMs,
  sessionReadDefaultBytes,
  sessionReadMaxBytes,
  sessionReadWaitMaxMs,
} from "@holdfast/contract";
import { type AgentStream, AnsweredError, type CallContext, type Router } from "@holdfast/guest-link";
import { membersOf } from "../execution/members.ts";
import { send } from "../execution/processes.ts";
import { notPermitted } from "../execution/signal-group.ts";
import { parseSignal } from "../execution/signals.ts";
import { invalid } from "../execution/start-wish.ts";
import { startHeld } from "../execution/unconfirmed-end.ts";
import { expectBoot } from "../expect-boot.ts";
import type { CallEpoch, EndHeld, Fence } from "../fence/fence.ts";
import { endSession } from "./end-session.ts";
import type { Session } from "./session.ts";
import { SessionFollower } from "./session-follower.ts";
import { rowOf } from "./session-rows.ts";
import type { Opener, SessionTable } from "./session-table.ts";
import { parseOpen, parseSessionId, parseSize } from "./session-wish.ts";

export interface SessionsServed {
  readonly table: SessionTable;
  readonly fence: Fence;
  readonly bootId: string;
  readonly clock: Clock;
}

/** Serves sessions. Each change is judged in the step in which it is made (G5a). */
export function routeSessions(router: Router, served: SessionsServed): void {
  const { table, fence, bootId } = served;
  const { method } = SessionService;
  const required = async (text: string, { signal }: CallContext): Promise<Session> => {
    const id = parseSessionId(text);
    await table.settled(id, signal);
    return table.require(id);
  };
  router
    .unary(method.openSession, async (request, { epoch }) => {
      expectBoot(request.expectedBootId, bootId);
      const wish = parseOpen(request);
      const { attachmentId } = wish;
      const opener = openerOf(fence, epoch, attachmentId);
      const session = await fence.effect(epoch, () => table.open(wish, opener));
      return { session: rowOf(session), bootId, attachmentId };
    })
    .stream(method.attachSession, (request, stream) => attach(served, request, stream))
    .unary(method.writeSession, async (request, context) =>
      write(await required(request.sessionId, context), fence, request, context),
    )
    .unary(method.resizeSession, async (request, context) => {
      const session = await required(request.sessionId, context);
      const size = parseSize(request.size);
      if (size === undefined) throw invalid("size", "must be given");
      assertTerminal(session);
      if (request.attachmentId !== "") session.attachments.requireExclusive(request.attachmentId);
      fence.admit(context.epoch);
      session.resize(size);
      return {};
    })
    .unary(method.signalSession, async (request, context) => {
      const session = await required(request.sessionId, context);
      await signalForeground(session, request, () => fence.admit(context.epoch));
      return {};
    })
    .unary(method.killSession, async (request, context) => {
      const signal = parseSignal(request.signal, "SIGKILL");
      const admit = fence.admitting(context.epoch);
      await startedToEnd(served, parseSessionId(request.sessionId), { signal, admit }, context.signal);
      const session = await required(request.sessionId, context);
      await endSession(session, signal, admit);
      return { session: rowOf(session) };
    })
    .unary(method.readSession, async (request, { signal }) => {
      const id = parseSessionId(request.sessionId);
      if (!table.has(id)) await table.settled(id, signal);
      return read(table.require(id), request, served, signal);
    })
    .unary(method.listSessions, async () => ({ sessions: table.all.map(rowOf), bootId }))
    .unary(method.detachSession, async (request, context) => {
      const opening = table.opening(parseSessionId(request.sessionId));
      if (opening?.attachments.has(request.attachmentId)) {
        fence.admit(context.epoch);
        opening.attachments.detach(request.attachmentId, request.clientClosed);
        return {};
      }
      const session = await required(request.sessionId, context);
      const { epoch } = context;
      fence.admit(epoch);
      const mode = session.attachments.detach(request.attachmentId, request.clientClosed);
      // Whoever lets go before a suspend relies on it: what was bound to the client is gone when this is answered.
      if (mode === "exclusive" && request.clientClosed && session.wish.clientBound) {
        await endSession(session, "SIGKILL", () => fence.admit(epoch));
      }
      return {};
    });
}

/**
 * Waits for the start of a session that is to be ended, as long as a kill may take. Rejects with CANCELLATION_UNCONFIRMED, or as the
 * signal; the session is then ended once it runs.
 */
async function startedToEnd(
  { table, clock }: SessionsServed,
  id: SessionId,
  end: { readonly signal: NodeJS.Signals; readonly admit: () => void },
  caller: AbortSignal,
): Promise<void> {
  const opening = table.opening(id);
  if (opening === undefined) return;
  using within = new Deadline(clock, sessionKillAnswerMs, caller);
  try {
    await table.settled(id, within.signal);
  } catch (error) {
    opening.endOnceStarted(end.signal, end.admit);
    if (!within.expired) throw error;
    throw startHeld({ kind: "session", id });
  }
}

/** Apart from the request: what is made here may last as long as the session. */
function openerOf(fence: Fence, epoch: CallEpoch, attachmentId: string): Opener {
  const whileHeld = (end: EndHeld): (() => void) => fence.onRaise(epoch, end);
  const reservation = attachmentId === "" ? undefined : { attachmentId, whileHeld };
  return { admit: fence.admitting(epoch), reservation };
}

async function attach(served: SessionsServed, request: AttachSessionRequest, stream: AgentStream): Promise<void> {
  const { table, fence, bootId } = served;
  const isExpected = (): void => expectBoot(request.expectedBootId, bootId);
  const id = parseSessionId(request.sessionId);
  if (!table.has(id)) await table.settled(id, stream.context.signal);
  const session = table.require(id, isExpected); // A lost session says more than the boot id.
  isExpected();
  const mode = request.mode === AttachMode.OBSERVE ? "observe" : "exclusive";
  const size = parseSize(request.size);
  if (size !== undefined && mode === "observe") throw invalid("size", "is an exclusive attachment's");
  const fromOffset = offsetIn(session, request.fromOffset);
  const { epoch } = stream.context;
  const follower = new SessionFollower(session, stream, fromOffset);
  const attached = {
    end(why: AnsweredError): void {
      stream.endByForce(why);
      follower.end(why);
    },
  };
  // A session that has ended is read to its end, and has no attachments any more.
  const attachment =
    session.exit === undefined
      ? session.attachments.take({
          mode,
          attachmentId: request.attachmentId,
          stream: attached,
          whileHeld: (end) => fence.onRaise(epoch, end),
        })
      : undefined;
  if (attachment !== undefined) {
    void stream.callerEnd.then((end) => {
      session.attachments.leave(attachment, attached, end.t === "ended" && end.clientClosed);
    });
    if (size !== undefined) session.resize(size);
  }
  await follower.run({
    attachmentId: attachment?.id ?? "",
    nextInputSequence: BigInt(attachment?.input?.next ?? 0),
    bootId,
    offset: BigInt(fromOffset),
    session: rowOf(session),
  });
}

async function write(session: Session, fence: Fence, request: WriteSessionRequest, { epoch, signal }: CallContext) {
  const { attachmentId, data } = request;
  assertTerminal(session);
  if (data.length > sessionInputMaxBytes) throw invalid("data", `is longer than ${sessionInputMaxBytes} bytes`);
  if (request.sequence < 1n || request.sequence > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw invalid("sequence", "must be 1 or more");
  }
  const { input } = session.attachments.requireExclusive(attachmentId);
  const sequence = Number(request.sequence);
  try {
    const next = await input.put({ sequence, data, admit: () => fence.admit(epoch), signal });
    return { nextSequence: BigInt(next) };
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EIO")) throw error;
    throw input.withHalf(
      new AnsweredError(
        "ATTACHMENT_NOT_FOUND",
        `Input ${sequence} was not written to its end: nobody reads the terminal of session ${session.wish.id} any more, its program is ending.`,
        { session_id: session.wish.id, attachment_id: attachmentId },
      ),
    );
  }
}

/** To the process group in the foreground, if it is the session's: a group's number may be another's by now. */
async function signalForeground(session: Session, request: SignalSessionRequest, admit: () => void): Promise<void> {
  const signal = parseSignal(request.signal);
  if (request.attachmentId !== "") session.attachments.requireExclusive(request.attachmentId);
  const { foregroundGroup: group, belonging } = session;
  if (session.exit !== undefined || group === undefined || belonging === undefined) return;
  const members = await membersOf(belonging);
  if (!members.some((member) => member.group === group && member.session === belonging.leader)) return;
  admit();
  if (send(-group, signal) !== "denied") return;
  const inGroup = members.filter((member) => member.group === group);
  throw notPermitted(signal, inGroup);
}

async function read(
  session: Session,
  request: ReadSessionRequest,
  { clock }: SessionsServed,
  signal: AbortSignal,
): Promise<MessageInitShape<typeof ReadSessionResponseSchema>> {
  const { maxBytes, waitMs } = request;
  if (maxBytes > sessionReadMaxBytes) throw invalid("max_bytes", `is more than ${sessionReadMaxBytes}`);
  if (waitMs > sessionReadWaitMaxMs) throw invalid("wait_ms", `is more than ${sessionReadWaitMaxMs}`);
  const fromOffset = offsetIn(session, request.fromOffset);
  const { log } = session;
  if (fromOffset === log.end && waitMs > 0 && session.exit === undefined) {
    await moreFrom(session, clock, waitMs, signal);
  }
  const offset = Math.max(fromOffset, log.start);
  const pieces: Buffer[] = [];
  let leftBytes = maxBytes === 0 ? sessionReadDefaultBytes : maxBytes;
  let position = offset;
  for (let piece = log.at(position); piece !== undefined && leftBytes > 0; piece = log.at(position)) {
    const bytes = piece.bytes.subarray(0, leftBytes);
    pieces.push(bytes);
    position += bytes.length;
    leftBytes -= bytes.length;
  }
  return {
    data: Buffer.concat(pieces),
    offset: BigInt(offset),
    nextOffset: BigInt(position),
    session: rowOf(session),
  };
}

/** Until there is more output, or the end, or the time is over, or the caller has gone. */
function moreFrom(session: Session, clock: Clock, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stopWatching();
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stopWatching = session.watch(done);
    const cancel = clock.schedule(waitMs, done);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}

function offsetIn({ log, wish }: Session, offset: bigint): number {
  if (offset <= BigInt(log.end)) return Number(offset);
  throw new AnsweredError(
    "OFFSET_OUT_OF_RANGE",
    `Session ${wish.id} has written ${log.end} bytes; offset ${offset} lies beyond.`,
    { session_id: wish.id, from_offset: String(offset), end: String(log.end) },
  );
}

function assertTerminal({ wish }: Session): void {
  if (wish.kind !== "terminal") throw invalid("session_id", `names a detached program, which has no terminal`);
}
