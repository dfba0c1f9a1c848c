import { create, toBinary } from "@bufbuild/protobuf";
import { CallSchema, EndSchema, HelloSchema, OpenSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { frameTypes } from "../../packages/guest-link/src/frame.ts";
import type { FuzzCase } from "./fuzz-case.ts";
import { frameOf } from "./raw-link.ts";

const nothing = Buffer.alloc(0);

/** Cases that were interesting once, each played at the beginning of every run. */
export function corpus(): readonly FuzzCase[] {
  const health = callOf("holdfast.guest.v1.AgentService/Health");
  return [
    control(
      "an answer that would quote a name of 3 MB",
      [callOf(`holdfast.guest.v1.None/${"n".repeat(3_000_000)}`)],
      [1],
    ),
    stream("an END that would quote a name of 3 MB", [openOf(`holdfast.guest.v1.None/${"n".repeat(3_000_000)}`)], [0]),
    control("a name that every object has", [callOf("constructor"), callOf("__proto__", 2), callOf("", 3)], [1, 2, 3]),
    control("the largest call id", [callOf("holdfast.guest.v1.AgentService/Health", 2 ** 32 - 1)], [2 ** 32 - 1]),
    control("a call after a cancel of nobody", [frameOf("control", frameTypes.cancel, nothing, 9), health], [1]),
    control(
      "one byte at a time",
      [...health].map((byte) => Buffer.from([byte])),
      [1],
    ),
    control("what only an agent says", [frameOf("control", frameTypes.reply, nothing, 1)], [], "finish"),
    {
      ...control("a forced end, which only an agent tells", [streamEndOf(1), health], [], "finish"),
      types: [frameTypes.streamEnd],
    },
    control("a forced end of 4 GiB", [frameOf("control", frameTypes.streamEnd, nothing, 1, 2 ** 32 - 1)], [], "finish"),
    stream("a forced end on the stream itself", [streamEndOf(1)], [], "finish"),
    stream("an OPEN under the largest number", [openOf("holdfast.guest.v1.None/Such", 2 ** 32 - 1)], [0]),
    control("half a header", [nothing, health.subarray(0, 4)], [], "finish"),
    {
      kind: "corpus: a version that nobody speaks",
      role: "unproved",
      chunks: [
        frameOf("handshake", frameTypes.hello, toBinary(HelloSchema, create(HelloSchema, { protocolVersion: 7 }))),
      ],
      ending: "finish",
      promised: [],
      methods: [],
      types: [frameTypes.hello],
    },
    stream("EOF before OPEN", [frameOf("stream", frameTypes.eof, nothing)], [], "finish"),
    stream("END before OPEN", [frameOf("stream", frameTypes.end, nothing)], [], "finish"),
    stream(
      "bytes behind a method that is not served",
      [openOf("holdfast.guest.v1.None/Such"), dataOf(10), frameOf("stream", frameTypes.eof, nothing)],
      [0],
    ),
    stream("DATA to who takes none", [openOf("holdfast.guest.v1.FileService/List"), dataOf(100)], [], "finish"),
    stream("a length of 4 GiB", [frameOf("stream", frameTypes.open, Buffer.alloc(3), 0, 2 ** 32 - 1)], [], "finish"),
    stream(
      "an upload behind its refusal",
      [
        openOf("holdfast.guest.v1.FileService/Write"),
        ...Array.from({ length: 40 }, () => dataOf(65_536)),
        frameOf("stream", frameTypes.eof, nothing),
      ],
      [0],
    ),
  ];
}

function callOf(method: string, id = 1): Buffer {
  return frameOf("control", frameTypes.call, toBinary(CallSchema, create(CallSchema, { method })), id);
}

function openOf(method: string, streamId = 0): Buffer {
  return frameOf("stream", frameTypes.open, toBinary(OpenSchema, create(OpenSchema, { method, streamId })));
}

function streamEndOf(streamId: number): Buffer {
  return frameOf("control", frameTypes.streamEnd, toBinary(EndSchema, create(EndSchema, {})), streamId);
}

const dataOf = (bytes: number): Buffer => frameOf("stream", frameTypes.data, Buffer.alloc(bytes, 7));

type Ending = FuzzCase["ending"];

function control(
  name: string,
  chunks: readonly Buffer[],
  promised: readonly number[],
  ending: Ending = "await",
): FuzzCase {
  return { kind: `corpus: ${name}`, role: "control", chunks, ending, promised, methods: [], types: [] };
}

function stream(
  name: string,
  chunks: readonly Buffer[],
  promised: readonly number[],
  ending: Ending = "await",
): FuzzCase {
  return { kind: `corpus: ${name}`, role: "stream", chunks, ending, promised, methods: [], types: [] };
}
