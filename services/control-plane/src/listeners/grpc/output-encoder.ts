import { type DescMessage, toBinary } from "@bufbuild/protobuf";
import type {
  AttachExecutionResponse,
  ExecuteInteractiveResponse,
  ExecuteResponse,
  ExecutionOutput,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { varintLength, writeVarint } from "./varint.ts";

/** Wire tags: `output` of each of the streams of a command; `stream`, `offset` and `data` of ExecutionOutput. (output-encoder.test.ts) */
const outputTag = 0x12;
const streamTag = 0x08;
const offsetTag = 0x10;
const dataTag = 0x1a;

/** The three are alike, by name and number. */
export type CommandEvent = ExecuteResponse | ExecuteInteractiveResponse | AttachExecutionResponse;

/**
 * An event of a command as bytes. Output, the one message that carries bulk, is laid by hand into a buffer of its exact size; the general
 * encoder grows and copies. Everything else goes through the general encoder.
 */
export function encodeCommandEvent(schema: DescMessage, response: CommandEvent): Buffer {
  const { event } = response;
  if (event.case === "output" && event.value.$unknown === undefined && response.$unknown === undefined) {
    return encodeOutput(event.value);
  }
  const bytes = toBinary(schema, response);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function encodeOutput({ stream, offset, data }: ExecutionOutput): Buffer {
  const streamBytes = stream === 0 ? 0 : 1 + varintLength(BigInt(stream));
  const offsetBytes = offset === 0n ? 0 : 1 + varintLength(offset);
  const dataLength = BigInt(data.byteLength);
  const dataBytes = data.byteLength === 0 ? 0 : 1 + varintLength(dataLength) + data.byteLength;
  const inner = streamBytes + offsetBytes + dataBytes;
  const buffer = Buffer.allocUnsafe(1 + varintLength(BigInt(inner)) + inner);
  let at = writeVarint(buffer, buffer.writeUInt8(outputTag, 0), BigInt(inner));
  if (streamBytes > 0) at = writeVarint(buffer, buffer.writeUInt8(streamTag, at), BigInt(stream));
  if (offsetBytes > 0) at = writeVarint(buffer, buffer.writeUInt8(offsetTag, at), offset);
  if (dataBytes > 0) {
    at = writeVarint(buffer, buffer.writeUInt8(dataTag, at), dataLength);
    buffer.set(data, at);
  }
  return buffer;
}
