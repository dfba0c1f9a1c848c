import { create, type DescField, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { Random } from "./random.ts";

/** What random fields are taken from, so that messages meet each other and reach nobody but the guest. */
export interface Pools {
  readonly executionIds: readonly string[];
  readonly sessionIds: readonly string[];
  readonly attachmentIds: readonly string[];
  readonly paths: readonly string[];
  /** Ports that may be dialled; nobody else's server is. */
  readonly ports: readonly number[];
  readonly bootId: string;
  readonly epoch: bigint;
}

const commands = ["true", "cat", "sleep", "sh", "seq", "nobody-has-such-a-program", "", "/", "./x"];
const signals = ["TERM", "SIGINT", "KILL", "WINCH", "STOP", "CONT", "USR1", "NOPE", ""];
const modes = [0, 0o644, 0o755, 0o1777, 2 ** 32 - 1];

/** A message of this type with random fields: by reflection, so that no field is left out when protos grow. */
export function randomMessage<T extends DescMessage>(schema: T, random: Random, pools: Pools): MessageShape<T> {
  const message = create(schema);
  fill(reflect(schema, message), random, pools, 0);
  return message;
}

type Reflected = ReturnType<typeof reflect>;

function fill(message: Reflected, random: Random, pools: Pools, depth: number): void {
  for (const field of message.desc.fields) {
    if (!random.chance(0.6)) continue;
    if (field.oneof !== undefined && message.oneofCase(field.oneof) !== undefined) continue;
    if (field.fieldKind === "list") {
      for (let left = random.pick([0, 1, 2, 3, 40]); left > 0; left -= 1) {
        if (field.listKind === "scalar") message.get(field).add(scalarOf(field, field.scalar, random, pools));
      }
    } else if (field.fieldKind === "map") {
      for (let left = random.pick([0, 1, 3]); left > 0; left -= 1) {
        const name = random.pick(["A", "HOME", "PATH", "", "B=C", "N\0UL", "__proto__", text(random)]);
        if (field.mapKind === "scalar") message.get(field).set(name, text(random));
      }
    } else if (field.fieldKind === "message") {
      if (depth > 3) continue;
      const inner = reflect(field.message, create(field.message));
      fill(inner, random, pools, depth + 1);
      message.set(field, inner);
    } else if (field.fieldKind === "enum") {
      message.set(field, random.pick([0, 1, 2, 3, 77, -1]));
    } else {
      message.set(field, scalarOf(field, field.scalar, random, pools));
    }
  }
}

/** Also of a size that makes an answer which quotes it too long for the link. */
export function text(random: Random): string {
  return random.pick([
    "",
    "x",
    "a b",
    "ü\u{1f600}",
    "N\0UL",
    "../..",
    "%2e%2e",
    "y".repeat(300),
    "z".repeat(random.chance(0.03) ? 3_000_000 : 70_000),
  ]);
}

function scalarOf(field: DescField, type: ScalarType, random: Random, pools: Pools): unknown {
  const { name } = field;
  switch (type) {
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.STRING:
      return stringOf(name, random, pools);
    case ScalarType.BYTES:
      return random.bytes(random.pick([0, 1, 16, 32, 5_000, 65_536, 65_537]));
    case ScalarType.UINT64:
    case ScalarType.INT64:
      return bigOf(name, type, random, pools);
    default:
      return numberOf(name, type, random, pools);
  }
}

function stringOf(name: string, random: Random, pools: Pools): string {
  if (random.chance(0.15)) return text(random);
  switch (name) {
    case "execution_id":
      return random.pick(pools.executionIds);
    case "session_id":
      return random.pick(pools.sessionIds);
    case "attachment_id":
      return random.pick(["", ...pools.attachmentIds]);
    case "expected_boot_id":
      return random.pick(["", "", pools.bootId, "another"]);
    case "path":
    case "from":
    case "to":
    case "cwd":
      return random.pick(pools.paths);
    case "glob":
      return random.pick(["", "**", "*.txt", "**/*", "[", "{a,b}*", "**/**/**/**/x"]);
    case "command":
      return random.pick(commands);
    case "host":
      return random.pick(["", "127.0.0.1", "::1", "localhost", "10.0.0.1"]);
    case "signal":
      return random.pick(signals);
    default:
      return text(random);
  }
}

function bigOf(name: string, type: ScalarType, random: Random, pools: Pools): bigint {
  // A number that is raised to for good would end the run: at most by one, or beyond what may be.
  if (name === "epoch") {
    if (random.chance(0.05)) return pools.epoch + 1n;
    return random.pick([pools.epoch, pools.epoch, 0n, 2n ** 53n, 2n ** 64n - 1n]);
  }
  if (name === "timeout_ms") return BigInt(random.pick([1, 50, 300]));
  if (name === "seconds") return random.pick([0n, 0n, 1n, -1n, 3n * 10n ** 11n, 2n ** 63n - 1n, -(2n ** 63n)]);
  const most = type === ScalarType.UINT64 ? 2n ** 64n - 1n : 2n ** 63n - 1n;
  return random.pick([0n, 0n, 1n, 5n, 1000n, 2n ** 31n, 2n ** 53n, most]);
}

function numberOf(name: string, type: ScalarType, random: Random, pools: Pools): number {
  if (name === "port") return random.pick(pools.ports);
  if (name === "mode") return random.pick(modes);
  if (name === "wait_ms") return random.pick([0, 1, 50, 200, 60_001, 2 ** 32 - 1]);
  if (name === "nanos") return random.pick([0, 1, 5_000_000, 100_000_000, -1, 2 ** 31 - 1, -(2 ** 31)]);
  const isSigned = type === ScalarType.INT32 || type === ScalarType.SINT32 || type === ScalarType.SFIXED32;
  return random.pick([0, 1, 2, 80, 65_535, 65_536, 2 ** 31 - 1, isSigned ? -(2 ** 31) : 2 ** 32 - 1]);
}
