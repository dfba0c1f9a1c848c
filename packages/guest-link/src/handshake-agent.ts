import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ChallengeSchema,
  ConnectionRole,
  HelloSchema,
  ProofSchema,
  RefusalReason,
  RefusedSchema,
  WelcomeSchema,
} from "@holdfast/api/holdfast/guest/v1/link_pb";
import { type Clock, systemClock } from "@holdfast/async";
import { linkAuthenticateTimeoutMs, linkProtocolVersion, linkUnauthenticatedMaxBytes } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import { FramedSocket } from "./framed-socket.ts";
import { isProof, nonceBytes, proofOf } from "./handshake-proof.ts";
import { LinkProtocolError } from "./link-errors.ts";

/** What an agent says of itself to a caller that has proved the token. */
export interface AgentIdentity {
  readonly token: string;
  readonly bootId: string;
  readonly features: readonly string[];
}

/** A caller that has proved the token. */
export interface ProvedCaller {
  readonly socket: FramedSocket;
  readonly phase: "control" | "stream";
  readonly clientId: string;
}

export interface HandshakeOutcome {
  /** Asked before the caller is welcomed: a text is the refusal, for want of room. */
  mayEnter(): string | undefined;
  /** The connection may serve: has it entered its phase, with whoever listens from here on. At most once, before anything of the caller is read. */
  proved(caller: ProvedCaller): void;
  /** The handshake is over, whichever way. Called once. */
  settled(): void;
}

/** Serves the agent's side of a handshake: proves both sides, or refuses and closes. Bounded in bytes and time. */
export function greet(raw: Socket, agent: AgentIdentity, outcome: HandshakeOutcome, clock: Clock = systemClock): void {
  let hello: Buffer | undefined;
  let challenge: Uint8Array | undefined;
  let phase: "control" | "stream" = "stream";
  let clientId = "";
  let over = false;
  const settle = (): void => {
    if (over) return;
    over = true;
    cancelTimer();
    outcome.settled();
  };
  const refuse = (reason: RefusalReason, message: string): void => {
    const refused = create(RefusedSchema, { reason, message, protocolVersion: linkProtocolVersion });
    socket.send(frameTypes.refused, toBinary(RefusedSchema, refused));
    settle();
    closeRefused(raw);
  };

  const onHello = (payload: Buffer): void => {
    const theirs = fromBinary(HelloSchema, payload);
    if (theirs.protocolVersion !== linkProtocolVersion) {
      refuse(
        RefusalReason.PROTOCOL_VERSION,
        `this agent speaks version ${linkProtocolVersion} of the link, not ${theirs.protocolVersion}`,
      );
      return;
    }
    if (theirs.clientNonce.length !== nonceBytes || theirs.role === ConnectionRole.UNSPECIFIED) {
      refuse(RefusalReason.MALFORMED, "HELLO has no role, or no nonce of 32 bytes");
      return;
    }
    hello = payload;
    phase = theirs.role === ConnectionRole.CONTROL ? "control" : "stream";
    clientId = Buffer.from(theirs.clientId).toString("hex");
    challenge = toBinary(
      ChallengeSchema,
      create(ChallengeSchema, { protocolVersion: linkProtocolVersion, serverNonce: randomBytes(nonceBytes) }),
    );
    socket.send(frameTypes.challenge, challenge);
  };

  const onProof = (payload: Buffer, greeting: Buffer, ours: Uint8Array): void => {
    const proof = fromBinary(ProofSchema, payload);
    if (!isProof(proofOf("caller", agent.token, greeting, ours), proof.mac)) {
      refuse(RefusalReason.TOKEN, "the proof does not match this guest's token; nothing was looked at");
      return;
    }
    const full = outcome.mayEnter();
    if (full !== undefined) {
      refuse(RefusalReason.CAPACITY, full);
      return;
    }
    const mac = proofOf("agent", agent.token, greeting, ours);
    const welcome = create(WelcomeSchema, { mac, bootId: agent.bootId, features: [...agent.features] });
    socket.send(frameTypes.welcome, toBinary(WelcomeSchema, welcome));
    settle();
    outcome.proved({ socket, phase, clientId });
  };

  const socket = new FramedSocket(raw, {
    frame: (type, payload) => {
      if (over) return;
      if (socket.bytesRead > linkUnauthenticatedMaxBytes) throw new LinkProtocolError("too much before the proof");
      if (type === frameTypes.hello && hello === undefined) onHello(payload);
      else if (type === frameTypes.proof && hello && challenge) onProof(payload, hello, challenge);
      else throw new LinkProtocolError(`a frame of type ${type} out of turn`);
    },
    data: () => undefined, // The decoder lets no DATA through during the handshake.
    closed: settle,
  });
  const cancelTimer = clock.schedule(linkAuthenticateTimeoutMs, () =>
    refuse(RefusalReason.TOO_SLOW, `not authenticated within ${linkAuthenticateTimeoutMs} ms`),
  );
}

/** Turns a connection away before its HELLO is read. */
export function turnAway(raw: Socket, message: string): void {
  const socket = new FramedSocket(raw, { frame: () => undefined, data: () => undefined, closed: () => undefined });
  const refused = create(RefusedSchema, {
    reason: RefusalReason.CAPACITY,
    message,
    protocolVersion: linkProtocolVersion,
  });
  socket.send(frameTypes.refused, toBinary(RefusedSchema, refused));
  closeRefused(raw);
}

/** Lets the refusal leave, then closes, however little the peer reads. */
function closeRefused(raw: Socket): void {
  raw.end();
  const timer = setTimeout(() => raw.destroy(), refusedCloseMs);
  raw.once("close", () => clearTimeout(timer));
}

/** How long a refused connection may take to go. */
const refusedCloseMs = 1_000;
