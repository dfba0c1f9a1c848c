import { randomBytes } from "node:crypto";
import { create, type DescMethod, toBinary } from "@bufbuild/protobuf";
import { CallSchema, EndSchema, OpenSchema, ProofSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { frameTypes, type LinkPhase, payloadLimits } from "../../packages/guest-link/src/frame.ts";
import { calls, isPrompt, nameOf, streams, uploads } from "./methods.ts";
import type { Random } from "./random.ts";
import type { Pools } from "./random-message.ts";
import { frameOf, helloOf } from "./raw-link.ts";
import { requestFor } from "./valid-request.ts";

/** What one connection sends, and how it ends. */
export interface FuzzCase {
  readonly kind: string;
  /** Whether it proves itself first, and as what. */
  readonly role: "control" | "stream" | "unproved";
  /** Written one after the other, each once the one before has left. */
  readonly chunks: readonly Buffer[];
  /** `await`: until every promised answer has come. */
  readonly ending: "cut" | "finish" | "await";
  /** Call ids that must be answered; for a stream 0, its END. */
  readonly promised: readonly number[];
  /** Served methods that the agent gets to see a whole request of. */
  readonly methods: readonly string[];
  /** Types of the whole frames that are sent. */
  readonly types: readonly number[];
}

interface Draft {
  readonly chunks: Buffer[];
  readonly promised: number[];
  readonly methods: string[];
  readonly types: number[];
}

const allTypes = Object.values(frameTypes);
const emptyDraft = (): Draft => ({ chunks: [], promised: [], methods: [], types: [] });

/** The next case of this seed. */
export function nextCase(random: Random, pools: Pools): FuzzCase {
  const dice = random.fraction();
  if (dice < 0.44) return damaged(callsCase(random, pools), random);
  if (dice < 0.95) return damaged(streamCase(random, pools), random);
  if (dice < 0.975) return junkAfterProof(random);
  return strangerCase(random);
}

function callsCase(random: Random, pools: Pools): FuzzCase {
  const draft = emptyDraft();
  const count = random.pick([1, 2, 5, 20]);
  for (let id = 1; id <= count; id += 1) addCall(draft, id, random, pools);
  return { kind: "calls", role: "control", ending: endingOf(random), ...draft };
}

function addCall(draft: Draft, id: number, random: Random, pools: Pools): void {
  const method = random.pick(calls);
  const timeoutMs = isPrompt(method) && random.chance(0.7) ? 0 : random.pick([1, 100, 500]);
  const call = create(CallSchema, {
    method: random.chance(0.02) ? `holdfast.guest.v1.None/${"n".repeat(random.pick([1, 3_000_000]))}` : nameOf(method),
    timeoutMs: BigInt(timeoutMs),
    message: messageFor(method, random, pools),
    ...epochOf(random, pools),
  });
  add(draft, "control", frameTypes.call, toBinary(CallSchema, call), id);
  draft.methods.push(call.method);
  if (timeoutMs === 0) draft.promised.push(id);
  if (random.chance(0.1)) add(draft, "control", frameTypes.ping, Buffer.alloc(0), random.whole(9));
  if (timeoutMs > 0 && random.chance(0.2)) add(draft, "control", frameTypes.cancel, Buffer.alloc(0), id);
}

function streamCase(random: Random, pools: Pools): FuzzCase {
  const draft = emptyDraft();
  const method = random.pick(streams);
  const open = create(OpenSchema, {
    method: random.chance(0.02) ? "holdfast.guest.v1.None/Such" : nameOf(method),
    message: messageFor(method, random, pools),
    streamId: random.pick([0, 1 + random.whole(9), 2 ** 32 - 1]),
    ...epochOf(random, pools),
  });
  add(draft, "stream", frameTypes.open, toBinary(OpenSchema, open));
  draft.methods.push(open.method);
  let mayHaveEnd = false;
  if (uploads.includes(method) && random.chance(0.8)) {
    for (let left = random.pick([0, 1, 3, 12]); left > 0; left -= 1) {
      add(draft, "stream", frameTypes.data, random.bytes(random.pick([0, 1, 1000, 65_536])));
    }
    for (let left = random.pick([0, 1, 1, 2]); left > 0; left -= 1)
      add(draft, "stream", frameTypes.eof, Buffer.alloc(0));
  }
  if (random.chance(0.3)) {
    mayHaveEnd = true;
    addEnd(draft, random);
  }
  if (random.chance(0.1)) {
    mayHaveEnd = true;
    const type = random.pick([frameTypes.open, frameTypes.message, frameTypes.data, frameTypes.eof, frameTypes.end]);
    add(draft, "stream", type, random.bytes(random.pick([0, 3, 700])));
  }
  const ends = open.method.endsWith("/Such") || ["List", "Remove", "Walk"].includes(method.name);
  if (ends && !mayHaveEnd && ![...draft.types].includes(frameTypes.data)) draft.promised.push(0);
  return { kind: `stream ${method.name}`, role: "stream", ending: endingOf(random), ...draft };
}

/** Within what a frame may carry: longer ones are announced by those that lie. */
function messageFor(method: DescMethod, random: Random, pools: Pools): Uint8Array {
  const message = random.chance(0.05) ? random.bytes(random.whole(200)) : requestFor(method, random, pools);
  return message.length < 4_000_000 ? message : Buffer.alloc(0);
}

function addEnd(draft: Draft, random: Random): void {
  const end = create(EndSchema, { clientClosed: random.chance(0.5) });
  add(draft, "stream", frameTypes.end, toBinary(EndSchema, end));
}

function add(draft: Draft, phase: LinkPhase, type: number, payload: Uint8Array, callId = 0): void {
  draft.chunks.push(frameOf(phase, type, payload, callId));
  draft.types.push(type);
}

/** Often as it is; else cut at any byte, split anywhere, repeated, or with frames that lie behind it. What the damage makes uncertain is not promised. */
function damaged(whole: FuzzCase, random: Random): FuzzCase {
  const bytes = Buffer.concat(whole.chunks);
  switch (
    random.pick(["no", "no", "no", "no", "no", "split", "split", "split", "cut", "cut", "flip", "lie", "again"])
  ) {
    case "split":
      return { ...whole, kind: `${whole.kind}, split`, chunks: split(bytes, random) };
    case "cut": {
      const first = whole.chunks[0]?.length ?? 0;
      // Behind the first frame, so that it gets to a method.
      const at = first + random.whole(bytes.length - first + 1);
      return { ...whole, kind: `${whole.kind}, cut`, chunks: [bytes.subarray(0, at)], ending: "cut", promised: [] };
    }
    case "flip": {
      const broken = Buffer.from(bytes);
      const at = random.whole(Math.min(broken.length, 200));
      broken[at] = random.whole(256);
      return {
        ...whole,
        kind: `${whole.kind}, flipped`,
        chunks: [broken],
        ending: "cut",
        promised: [],
        methods: [],
        types: [],
      };
    }
    case "lie": {
      const phase = whole.role === "control" ? "control" : "stream";
      const length = random.pick([2 ** 32 - 1, 2 ** 31, 4 * 1024 * 1024 + 1, 65_537, 10]);
      const lie = frameOf(phase, random.pick([...allTypes, 0, 37, 255]), Buffer.alloc(3), 7, length);
      return { ...whole, kind: `${whole.kind}, lie`, chunks: [...whole.chunks, lie], ending: "finish", promised: [] };
    }
    case "again":
      // The same call ids, or a second OPEN: breaks the protocol.
      return {
        ...whole,
        kind: `${whole.kind}, again`,
        chunks: [...whole.chunks, ...whole.chunks],
        ending: "cut",
        promised: [],
      };
    default:
      return whole;
  }
}

function split(bytes: Buffer, random: Random): readonly Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = chunks.length > 40 ? bytes.length : 1 + random.whole(random.pick([2, 9, 5_000]));
    chunks.push(bytes.subarray(at, at + length));
    at += length;
  }
  return chunks;
}

/** Any type of frame, in the phase that does not fit as well as in the one that does. */
function junkAfterProof(random: Random): FuzzCase {
  const role = random.pick(["control", "stream"] as const);
  const type = random.pick([...allTypes, random.whole(256)]);
  const limit = payloadLimits[role].get(type) ?? 20;
  const chunks = [frameOf(role, type, random.bytes(random.whole(Math.min(limit, 3_000) + 1)), random.whole(4))];
  return { kind: "junk", role, chunks, ending: "finish", promised: [], methods: [], types: [type] };
}

/** Somebody without the token. */
function strangerCase(random: Random): FuzzCase {
  const hello = frameOf("handshake", frameTypes.hello, helloOf(random.pick(["control", "stream"])));
  const proof = frameOf(
    "handshake",
    frameTypes.proof,
    toBinary(ProofSchema, create(ProofSchema, { mac: randomBytes(random.pick([0, 32, 64])) })),
  );
  const call = frameOf("control", frameTypes.call, Buffer.from("anything"), 1);
  const [chunks, types] = random.pick<readonly [readonly Buffer[], readonly number[]]>([
    [
      [hello, proof, call],
      [frameTypes.hello, frameTypes.proof],
    ],
    [[proof], [frameTypes.proof]],
    [
      [hello, hello],
      [frameTypes.hello, frameTypes.hello],
    ],
    [[frameOf("handshake", frameTypes.hello, random.bytes(300))], [frameTypes.hello]],
    [[random.bytes(random.whole(5_000))], []],
    [[hello.subarray(0, random.whole(hello.length))], []],
    [[], []],
  ]);
  return {
    kind: "stranger",
    role: "unproved",
    chunks,
    ending: random.pick(["cut", "finish"]),
    promised: [],
    methods: [],
    types,
  };
}

function endingOf(random: Random): FuzzCase["ending"] {
  return random.pick(["await", "await", "finish", "cut"]);
}

function epochOf(random: Random, pools: Pools): { epoch?: bigint } {
  if (random.chance(0.8)) return pools.epoch === 0n ? {} : { epoch: pools.epoch };
  return random.pick<{ epoch?: bigint }>([{}, { epoch: 0n }, { epoch: pools.epoch + 3n }, { epoch: 2n ** 64n - 1n }]);
}
