/** How many bytes a number takes as a protobuf varint. */
export function varintLength(value: bigint): number {
  let length = 1;
  for (let rest = value >> 7n; rest > 0n; rest >>= 7n) length += 1;
  return length;
}

/** Writes a varint and returns where it ends. */
export function writeVarint(buffer: Buffer, start: number, value: bigint): number {
  let at = start;
  let rest = value;
  for (; rest > 0x7fn; rest >>= 7n) at = buffer.writeUInt8(Number(rest & 0x7fn) | 0x80, at);
  return buffer.writeUInt8(Number(rest), at);
}
