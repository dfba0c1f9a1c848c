import { toBinary } from "@bufbuild/protobuf";
import { type FileChunk, type ReadFileResponse, ReadFileResponseSchema } from "@holdfast/api/holdfast/v1/file_pb";
import { varintLength, writeVarint } from "./varint.ts";

/** Wire tags: `chunk` of ReadFileResponse; `offset` and `data` of FileChunk. (file-encoder.test.ts) */
const chunkTag = 0x12;
const offsetTag = 0x08;
const dataTag = 0x12;

/** A ReadFileResponse as bytes. A chunk is laid by hand, as output is (output-encoder.ts). */
export function encodeReadFileResponse(response: ReadFileResponse): Buffer {
  const { event } = response;
  if (event.case === "chunk" && event.value.$unknown === undefined && response.$unknown === undefined) {
    return encodeChunk(event.value);
  }
  const bytes = toBinary(ReadFileResponseSchema, response);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function encodeChunk({ offset, data }: FileChunk): Buffer {
  const offsetBytes = offset === 0n ? 0 : 1 + varintLength(offset);
  const dataLength = BigInt(data.byteLength);
  const dataBytes = data.byteLength === 0 ? 0 : 1 + varintLength(dataLength) + data.byteLength;
  const inner = BigInt(offsetBytes + dataBytes);
  const buffer = Buffer.allocUnsafe(1 + varintLength(inner) + offsetBytes + dataBytes);
  let at = writeVarint(buffer, buffer.writeUInt8(chunkTag, 0), inner);
  if (offsetBytes > 0) at = writeVarint(buffer, buffer.writeUInt8(offsetTag, at), offset);
  if (dataBytes > 0) buffer.set(data, writeVarint(buffer, buffer.writeUInt8(dataTag, at), dataLength));
  return buffer;
}
