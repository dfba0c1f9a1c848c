import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { ConnectionRole, HelloSchema, ProofSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { linkProtocolVersion } from "@holdfast/contract";
import { frameTypes, type LinkPhase } from "../../packages/guest-link/src/frame.ts";
import { FrameDecoder } from "../../packages/guest-link/src/frame-decoder.ts";
import { proofOf } from "../../packages/guest-link/src/handshake-proof.ts";

export interface Where {
  readonly host: string;
  readonly port: number;
  readonly token: string;
}

export interface Frame {
  readonly type: number;
  readonly payload: Buffer;
  readonly callId: number;
}

/** One frame as bytes; the announced length may be a lie. */
export function frameOf(
  phase: LinkPhase,
  type: number,
  payload: Uint8Array,
  callId = 0,
  announced = payload.length,
): Buffer {
  const header = Buffer.alloc(phase === "control" ? 9 : 5);
  header.writeUInt32BE(announced >>> 0, 0);
  header.writeUInt8(type, 4);
  if (phase === "control") header.writeUInt32BE(callId >>> 0, 5);
  return Buffer.concat([header, payload]);
}

export function helloOf(role: "control" | "stream", clientId: Uint8Array = randomBytes(16)): Uint8Array {
  return toBinary(
    HelloSchema,
    create(HelloSchema, {
      protocolVersion: linkProtocolVersion,
      role: role === "control" ? ConnectionRole.CONTROL : ConnectionRole.STREAM,
      clientNonce: randomBytes(32),
      clientId,
    }),
  );
}

/** Connections share these, as one caller's do: what one brings about the agent tells on another. */
const clientIds = Array.from({ length: 4 }, () => randomBytes(16));
let proofs = 0;

/** A connection to an agent that sends whatever bytes it is given, and reads frames. */
export class RawLink {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  isClosed = false;
  /** Called with each frame; DATA with an empty payload. */
  onFrame: (frame: Frame) => void = () => undefined;
  readonly #decoder = new FrameDecoder();
  readonly #where: Where;

  constructor(where: Where) {
    this.#where = where;
    this.socket = connect({ host: where.host, port: where.port, noDelay: true });
    this.socket.on("error", () => undefined); // Its close follows, and is what counts.
    this.closed = new Promise((resolve) =>
      this.socket.once("close", () => {
        this.isClosed = true;
        resolve();
      }),
    );
    const sink = {
      frame: (type: number, payload: Buffer, callId: number) => this.onFrame({ type, payload, callId }),
      data: () => this.onFrame({ type: frameTypes.data, payload: Buffer.alloc(0), callId: 0 }),
    };
    this.socket.on("data", (chunk) => this.#decoder.push(chunk, sink));
  }

  /** Proves itself. False when the agent did not welcome it. */
  async prove(
    role: "control" | "stream",
    seen: (type: number) => void,
    clientId = clientIds[proofs++ % clientIds.length],
  ): Promise<boolean> {
    const hello = helloOf(role, clientId);
    seen(frameTypes.hello);
    this.socket.write(frameOf("handshake", frameTypes.hello, hello));
    const welcomed = new Promise<boolean>((resolve) => {
      void this.closed.then(() => resolve(false));
      this.onFrame = ({ type, payload }) => {
        seen(type);
        if (type === frameTypes.challenge) {
          seen(frameTypes.proof);
          const mac = proofOf("caller", this.#where.token, hello, payload);
          this.socket.write(
            frameOf("handshake", frameTypes.proof, toBinary(ProofSchema, create(ProofSchema, { mac }))),
          );
        } else if (type === frameTypes.welcome) {
          this.#decoder.phase = role;
          resolve(true);
        } else resolve(false);
      };
    });
    return welcomed;
  }

  /** Writes, and waits until it has left; false when the connection is gone. */
  send(bytes: Buffer): Promise<boolean> {
    if (this.isClosed || this.socket.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      void this.closed.then(() => resolve(false));
      this.socket.write(bytes, (error) => resolve(error === undefined || error === null));
    });
  }
}
