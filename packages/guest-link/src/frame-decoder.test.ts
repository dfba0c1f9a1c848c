import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { linkDataMaxBytes, linkHandshakeMaxBytes, linkMessageMaxBytes } from "@holdfast/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FrameType, frameTypes, headerBytesOf, type LinkPhase, writeHeader } from "./frame.ts";
import { FrameDecoder } from "./frame-decoder.ts";
import { LinkProtocolError } from "./link-errors.ts";

interface Frame {
  readonly type: number;
  readonly callId: number;
  readonly payload: string;
}

function encoded(phase: LinkPhase, type: FrameType, payload: Buffer, callId = 0): Buffer {
  const header = Buffer.alloc(headerBytesOf(phase));
  writeHeader(header, phase, type, payload.length, callId);
  return Buffer.concat([header, payload]);
}

/** Frames as decoded, with the bytes of neighbouring DATA frames as one. */
function decoded(phase: LinkPhase, chunks: readonly Buffer[]): Frame[] {
  const decoder = new FrameDecoder();
  decoder.phase = phase;
  const frames: Frame[] = [];
  for (const chunk of chunks) {
    decoder.push(chunk, {
      frame: (type, payload, callId) => frames.push({ type, callId, payload: payload.toString("hex") }),
      data: (bytes) => {
        const last = frames.at(-1);
        const joined = last?.type === frameTypes.data ? frames.pop() : undefined;
        const payload = (joined?.payload ?? "") + bytes.toString("hex");
        frames.push({ type: frameTypes.data, callId: 0, payload });
      },
    });
  }
  return frames;
}

describe("the codec", () => {
  // The same vectors stand in docs/design/guest-link.md, for agents written in other languages.
  it.each([
    ["PING on a control connection, call id 7", "control", "00000000" + "13" + "00000007"],
    ["CANCEL of call 258", "control", "00000000" + "12" + "00000102"],
    ["CALL 1 with two bytes", "control", "00000002" + "10" + "00000001" + "cafe"],
    [
      "STREAM_END of stream 5, boot id b, reason GONE",
      "control",
      "0000000b" + "15" + "00000005" + "0a016212060a04474f4e45",
    ],
    ["DATA of three bytes", "stream", "00000003" + "22" + "616263"],
    ["EOF", "stream", "00000000" + "23"],
  ] as const)("reads and writes %s as in the vectors", (_name, phase, hex) => {
    const bytes = Buffer.from(hex, "hex");
    const [frame] = decoded(phase, [bytes]);
    expect(frame).toBeDefined();
    if (frame === undefined) return;
    const payload = Buffer.from(frame.payload, "hex");
    expect(encoded(phase, frame.type as FrameType, payload, frame.callId).toString("hex")).toBe(hex);
  });

  it("reads the same frames wherever reads split", () => {
    const payload = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
    const streamFrame = fc.constantFrom(frameTypes.message, frameTypes.data, frameTypes.end);
    fc.assert(
      fc.property(fc.array(fc.tuple(streamFrame, payload), { minLength: 1, maxLength: 6 }), (frames) => {
        const bytes = Buffer.concat(frames.map(([type, content]) => encoded("stream", type, content)));
        const whole = decoded("stream", [bytes]);
        for (let at = 0; at <= bytes.length; at += 1) {
          expect(decoded("stream", [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
        }
        expect(
          decoded(
            "stream",
            [...bytes].map((byte) => Buffer.from([byte])),
          ),
        ).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  it("meets arbitrary bytes with frames or a protocol error, never with anything else", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<LinkPhase>("handshake", "control", "stream"),
        fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }),
        (phase, chunks) => {
          try {
            decoded(phase, chunks.map(Buffer.from));
          } catch (error) {
            expect(error).toBeInstanceOf(LinkProtocolError);
          }
        },
      ),
    );
  });

  it.each([
    ["handshake", frameTypes.hello, linkHandshakeMaxBytes],
    ["control", frameTypes.call, linkMessageMaxBytes],
    ["control", frameTypes.ping, 0],
    ["stream", frameTypes.message, linkMessageMaxBytes],
    ["stream", frameTypes.data, linkDataMaxBytes],
    ["stream", frameTypes.eof, 0],
  ] as const)(
    "in %s, ends the connection at an announced length beyond the limit of type %i before a payload byte is read",
    (phase, type, limit) => {
      const atLimit = Buffer.alloc(headerBytesOf(phase));
      writeHeader(atLimit, phase, type, limit, 0);
      expect(() => decoded(phase, [atLimit])).not.toThrow();
      const beyond = Buffer.alloc(headerBytesOf(phase));
      writeHeader(beyond, phase, type, limit + 1, 0);
      expect(() => decoded(phase, [beyond])).toThrow(LinkProtocolError);
    },
  );

  it("passes DATA through without copying it", () => {
    const chunk = encoded("stream", frameTypes.data, Buffer.from("uncopied"));
    const decoder = new FrameDecoder();
    decoder.phase = "stream";
    let passed: Buffer | undefined;
    decoder.push(chunk, { frame: () => undefined, data: (bytes) => (passed = bytes) });
    expect(passed?.buffer).toBe(chunk.buffer);
  });

  it("keeps no read alive for the few bytes of a message that it brought", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const decoder = new FrameDecoder();
    decoder.phase = "stream";
    const bytes = encoded("stream", frameTypes.message, Buffer.from("two halves"));
    const messages: Buffer[] = [];
    const sink = { frame: (_type: number, payload: Buffer) => void messages.push(payload), data: () => undefined };
    const read = (): WeakRef<ArrayBufferLike> => {
      const chunk = Buffer.alloc(64 * 1024);
      bytes.copy(chunk, 0, 0, 8);
      decoder.push(chunk.subarray(0, 8), sink);
      return new WeakRef(chunk.buffer);
    };
    const first = read();
    await new Promise((resolve) => setImmediate(resolve)); // A WeakRef keeps its target for the rest of the turn.
    collectGarbage();
    expect(first.deref()).toBeUndefined();
    decoder.push(bytes.subarray(8), sink);
    expect(messages.map(String)).toEqual(["two halves"]);
  });

  it("delivers nothing more of a chunk once it was stopped", () => {
    const two = Buffer.concat([
      encoded("stream", frameTypes.eof, Buffer.alloc(0)),
      encoded("stream", frameTypes.eof, Buffer.alloc(0)),
    ]);
    const decoder = new FrameDecoder();
    decoder.phase = "stream";
    let frames = 0;
    const sink = {
      frame: () => {
        frames += 1;
        decoder.stop();
      },
      data: () => undefined,
    };
    decoder.push(two, sink);
    expect(frames).toBe(1);
  });
});
