import { linkDataMaxBytes, linkHandshakeMaxBytes, linkMessageMaxBytes } from "@holdfast/contract";

/** The types of frames, as on the wire. A number is never given another meaning. (docs/design/guest-link.md) */
export const frameTypes = {
  hello: 1,
  challenge: 2,
  proof: 3,
  welcome: 4,
  refused: 5,
  call: 16,
  reply: 17,
  cancel: 18,
  ping: 19,
  pong: 20,
  streamEnd: 21,
  open: 32,
  message: 33,
  data: 34,
  eof: 35,
  end: 36,
} as const;

export type FrameType = (typeof frameTypes)[keyof typeof frameTypes];

/** What a connection carries at the moment: decides which frames may come, and whether they bear a call id. */
export type LinkPhase = "handshake" | "control" | "stream";

/** The most payload of each type in each phase; an absent type ends the connection. */
export const payloadLimits: Readonly<Record<LinkPhase, ReadonlyMap<number, number>>> = {
  handshake: new Map([
    [frameTypes.hello, linkHandshakeMaxBytes],
    [frameTypes.challenge, linkHandshakeMaxBytes],
    [frameTypes.proof, linkHandshakeMaxBytes],
    [frameTypes.welcome, linkHandshakeMaxBytes],
    [frameTypes.refused, linkHandshakeMaxBytes],
  ]),
  control: new Map([
    [frameTypes.call, linkMessageMaxBytes],
    [frameTypes.reply, linkMessageMaxBytes],
    [frameTypes.cancel, 0],
    [frameTypes.ping, 0],
    [frameTypes.pong, 0],
    [frameTypes.streamEnd, linkMessageMaxBytes],
  ]),
  stream: new Map([
    [frameTypes.open, linkMessageMaxBytes],
    [frameTypes.message, linkMessageMaxBytes],
    [frameTypes.data, linkDataMaxBytes],
    [frameTypes.eof, 0],
    [frameTypes.end, linkMessageMaxBytes],
  ]),
};

/** Bytes before the payload: u32 length, u8 type, and on a control connection u32 call id, which in STREAM_END is the stream's. */
export function headerBytesOf(phase: LinkPhase): number {
  return phase === "control" ? 9 : 5;
}

/** Lays out a frame's header. `callId` is written only on a control connection. */
export function writeHeader(target: Buffer, phase: LinkPhase, type: FrameType, length: number, callId: number): void {
  target.writeUInt32BE(length, 0);
  target.writeUInt8(type, 4);
  if (phase === "control") target.writeUInt32BE(callId, 5);
}
