import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ChallengeSchema,
  ConnectionRole,
  HelloSchema,
  ProofSchema,
  RefusalReason,
  type Refused,
  RefusedSchema,
  WelcomeSchema,
} from "@holdfast/api/holdfast/guest/v1/link_pb";
import { linkProtocolVersion } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import { FramedSocket, type SocketListener } from "./framed-socket.ts";
import { isProof, nonceBytes, proofOf } from "./handshake-proof.ts";
import { LinkProtocolError, NothingSent } from "./link-errors.ts";

/** Where a guest is, and the token that proves both sides. */
export interface LinkTarget {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Counts the connections that stand, or are being made. */
  readonly counts?: { connections: number } | undefined;
}

/** A connection whose both sides are proved. */
export interface Connection {
  readonly socket: FramedSocket;
  readonly bootId: string;
  readonly features: readonly string[];
}

const clientIdBytes = 16;

/** What all connections of one caller to one guest share. */
export function newClientId(): Buffer {
  return randomBytes(clientIdBytes);
}

/**
 * Opens a connection and proves both sides. Whatever fails here is NothingSent; an abort rejects with the signal's reason.
 * `listenerOf` is asked for once, when the connection begins to serve.
 */
export function dial(
  target: LinkTarget,
  phase: "control" | "stream",
  clientId: Uint8Array,
  listenerOf: (connection: Connection) => SocketListener,
  signal: AbortSignal,
): Promise<Connection> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const role = phase === "control" ? ConnectionRole.CONTROL : ConnectionRole.STREAM;
    const hello = toBinary(
      HelloSchema,
      create(HelloSchema, {
        protocolVersion: linkProtocolVersion,
        role,
        clientNonce: randomBytes(nonceBytes),
        clientId,
      }),
    );
    let challenge: Uint8Array | undefined;

    const raw = connect({ host: target.host, port: target.port });
    const { counts } = target;
    if (counts) {
      counts.connections += 1;
      raw.once("close", () => {
        counts.connections -= 1;
      });
    }
    const onAbort = (): void => fail(signal.reason);
    const fail = (error: unknown): void => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
      socket.destroy(error);
    };
    const onFrame = (type: number, payload: Buffer): void => {
      if (type === frameTypes.refused) {
        fail(refusalOf(fromBinary(RefusedSchema, payload), target));
      } else if (type === frameTypes.challenge && challenge === undefined) {
        const theirs = fromBinary(ChallengeSchema, payload);
        if (theirs.serverNonce.length !== nonceBytes) throw new LinkProtocolError("a challenge without a nonce");
        challenge = payload;
        const mac = proofOf("caller", target.token, hello, payload);
        socket.send(frameTypes.proof, toBinary(ProofSchema, create(ProofSchema, { mac })));
      } else if (type === frameTypes.welcome && challenge !== undefined) {
        const welcome = fromBinary(WelcomeSchema, payload);
        if (!isProof(proofOf("agent", target.token, hello, challenge), welcome.mac)) {
          fail(new NothingSent("token-refused", `What answers at ${target.host}:${target.port} is not the guest.`));
          return;
        }
        signal.removeEventListener("abort", onAbort);
        const connection: Connection = { socket, bootId: welcome.bootId, features: welcome.features };
        socket.enter(phase, listenerOf(connection));
        resolve(connection);
      } else {
        throw new LinkProtocolError(`a frame of type ${type} out of turn`);
      }
    };
    const socket = new FramedSocket(raw, {
      frame: onFrame,
      data: () => undefined, // The decoder lets no DATA through during the handshake.
      closed: (cause) => fail(cause instanceof NothingSent ? cause : unreachable(target, cause)),
    });
    raw.once("connect", () => socket.send(frameTypes.hello, hello));
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

function unreachable(target: LinkTarget, cause: unknown): NothingSent {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : undefined;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return new NothingSent("name-unresolvable", `The guest's address ${target.host} does not resolve.`, cause);
  }
  const why = code ?? (cause instanceof Error ? cause.message : "it closed the connection");
  return new NothingSent("no-connection", `No guest answers at ${target.host}:${target.port} (${why}).`, cause);
}

function refusalOf(refused: Refused, target: LinkTarget): NothingSent {
  const where = `The guest at ${target.host}:${target.port} refused the connection: ${refused.message}`;
  switch (refused.reason) {
    case RefusalReason.TOKEN:
      return new NothingSent("token-refused", where);
    case RefusalReason.PROTOCOL_VERSION:
      return new NothingSent("protocol-mismatch", `${where} (it speaks version ${refused.protocolVersion})`);
    case RefusalReason.CAPACITY:
      return new NothingSent("capacity", where);
    default:
      return new NothingSent("no-connection", where);
  }
}
