import { create, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { QuiesceRequestSchema } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import { OnDisconnect, StartExecutionRequestSchema } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { ReadRequestSchema, WriteRequestSchema } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { ConnectRequestSchema } from "@holdfast/api/holdfast/guest/v1/port_pb";
import {
  AttachSessionRequestSchema,
  OpenSessionRequestSchema,
  SessionKind,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import type { Random } from "./random.ts";
import { type Pools, randomMessage } from "./random-message.ts";

type Command = NonNullable<MessageInitShape<typeof StartExecutionRequestSchema>["command"]>;

const commands: readonly Command[] = [
  { command: "true" },
  { command: "seq", args: ["20000"] },
  { command: "head", args: ["-c", "200000", "/dev/zero"] },
  { command: "sh", args: ["-c", "echo out; echo err >&2; exit 3"] },
  { command: "sh", args: ["-c", "sleep 3 & echo left"] },
  { command: "sleep", args: ["5"] },
  { command: "cat", stdin: Buffer.alloc(100_000, 97) },
  { command: "cat", streamedStdin: true },
  { command: "nobody-has-such-a-program" },
];

/** A request that does something, for those methods of which a random one seldom would. */
export function requestFor(method: DescMethod, random: Random, pools: Pools): Uint8Array {
  switch (random.chance(0.6) ? method.name : "") {
    case "StartExecution":
      return encode(StartExecutionRequestSchema, {
        executionId: random.pick(pools.executionIds),
        command: random.pick(commands),
        retainOutput: random.chance(0.2),
        onDisconnect: random.chance(0.5) ? OnDisconnect.CANCEL : OnDisconnect.DETACH,
        drain: { seconds: 0n, nanos: 50_000_000 },
      });
    case "OpenSession":
      return encode(OpenSessionRequestSchema, {
        sessionId: random.pick(pools.sessionIds),
        kind: random.chance(0.8) ? SessionKind.TERMINAL : SessionKind.DETACHED,
        command: "sh",
        args: ["-c", random.pick(["seq 3000", "cat", "exit 4", "sleep 5"])],
      });
    case "AttachSession":
      return encode(AttachSessionRequestSchema, { sessionId: random.pick(pools.sessionIds), mode: random.whole(3) });
    case "Write":
      return encode(WriteRequestSchema, { path: random.pick(pools.paths), makeParents: random.chance(0.5) });
    case "Read":
      return encode(ReadRequestSchema, { path: random.pick(pools.paths) });
    case "Connect":
      return encode(ConnectRequestSchema, { port: random.pick(pools.ports) });
    case "Quiesce":
      return encode(QuiesceRequestSchema, { grace: { seconds: 0n, nanos: 10_000_000 } });
    default:
      return toBinary(method.input, randomMessage(method.input, random, pools));
  }
}

function encode<T extends Parameters<typeof create>[0]>(schema: T, init: MessageInitShape<T>): Uint8Array {
  return toBinary(schema, create(schema, init));
}
