import { createHmac, timingSafeEqual } from "node:crypto";

/** Whose proof it is. Part of what is signed, so that a proof cannot be sent back to whoever made it. */
export type ProofSide = "caller" | "agent";

export const nonceBytes = 32;

/**
 * The proof of one side: HMAC-SHA256 under the token over a label, the HELLO and the CHALLENGE exactly as they were
 * sent, each after its u32 length. Through them it is bound to both nonces, the role and the protocol version.
 */
export function proofOf(side: ProofSide, token: string, hello: Uint8Array, challenge: Uint8Array): Buffer {
  const mac = createHmac("sha256", token);
  mac.update(`holdfast guest link: ${side}\0`);
  for (const part of [hello, challenge]) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    mac.update(length).update(part);
  }
  return mac.digest();
}

/** Compares in constant time. */
export function isProof(expected: Buffer, given: Uint8Array): boolean {
  return given.length === expected.length && timingSafeEqual(expected, given);
}
